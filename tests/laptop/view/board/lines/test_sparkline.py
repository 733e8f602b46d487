from __future__ import annotations

from boxcar.laptop.view.board.terminal_lines import in_order, over_time, sparkline

LEVELS = "▁▂▃▄▅▆▇█"


def test_values_are_bars_between_the_least_and_the_greatest() -> None:
    assert sparkline([0.0, 50.0, 100.0], LEVELS, 0.0, 100.0) == "▁▅█"
    assert sparkline([3.0, 2.0, 1.0], LEVELS) == "█▅▁"


def test_what_nobody_measured_is_blank_and_one_value_makes_no_row() -> None:
    assert sparkline([None, 1.0, None, 2.0], LEVELS) == " ▁ █"
    assert sparkline([None, 1.0], LEVELS) == "", "a flat line would be a claim"
    assert sparkline([], LEVELS) == ""


def test_each_bar_is_the_mean_of_its_part_of_the_time() -> None:
    samples = [(1790.0, 10.0), (600.0, 40.0), (610.0, 60.0), (0.0, 90.0), (2000.0, 1.0)]
    assert over_time(samples, 1800.0, 3) == [10.0, 50.0, 90.0]
    assert over_time([(0.0, float("nan"))], 1800.0, 1) == [None]


def test_of_more_values_than_bars_neighbours_share_one() -> None:
    assert in_order([1.0, 2.0], 12) == [1.0, 2.0]
    assert in_order([1.0, 3.0, 5.0, 7.0], 2) == [2.0, 6.0]
    assert in_order([1.0, float("inf"), 2.0], 3) == [1.0, 2.0]
