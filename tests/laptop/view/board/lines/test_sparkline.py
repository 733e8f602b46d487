from __future__ import annotations

from boxcar.laptop.view.board.terminal_lines import sparkline
from boxcar.laptop.view.looks import Bars

LEVELS = "▁▂▃▄▅▆▇█"


def test_values_are_bars_between_the_least_and_the_greatest() -> None:
    assert sparkline(Bars([0.0, 50.0, 100.0], low=0.0, high=100.0), LEVELS, 9) == "▁▅█"
    assert sparkline(Bars([3.0, 2.0, 1.0]), LEVELS, 9) == "█▅▁"


def test_what_nobody_measured_is_blank_and_one_value_makes_no_row() -> None:
    seen = Bars([1.0, 2.0], ago_s=[25.0, 5.0], span_s=40.0)
    assert sparkline(seen, LEVELS, 4) == " ▁ █"
    assert sparkline(Bars([1.0], ago_s=[5.0], span_s=40.0), LEVELS, 4) == "", "it would be a claim"
    assert sparkline(Bars(), LEVELS, 9) == ""


def test_each_bar_is_the_mean_of_its_part_of_the_time() -> None:
    ago_s, values = [1790.0, 600.0, 610.0, 0.0, 2000.0], [10.0, 40.0, 60.0, 90.0, 1.0]
    assert Bars(values, ago_s, 1800.0).heights(3) == [10.0, 50.0, 90.0]
    assert Bars([float("nan")], [0.0], 1800.0).heights(1) == [None]


def test_of_more_values_than_bars_neighbours_share_one() -> None:
    assert Bars([1.0, 2.0]).heights(12) == [1.0, 2.0]
    assert Bars([1.0, 3.0, 5.0, 7.0]).heights(2) == [2.0, 6.0]
    assert Bars([1.0, float("inf"), 2.0]).heights(3) == [1.0, 2.0]


def test_a_value_that_never_changes_is_a_level_line_however_many_there_are() -> None:
    for value in (0.1, 0.3, 1e-5, 7.7):
        assert len({*sparkline(Bars([value] * 101), LEVELS, 12)}) == 1
