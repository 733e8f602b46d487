"""Curves: what was reported, bounded, with gaps where nothing finite was."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest

from boxcar.laptop.view.report import chart
from boxcar.laptop.view.report.chart import Dot


def line(points: int, slope: float = 1.0) -> list[tuple[float, float]]:
    return [(float(x), slope * x) for x in range(points)]


def test_a_chart_gets_fewer_points_than_a_series_has_with_the_first_and_the_last() -> None:
    series = {"loss": [(float(n), None, n / 2) for n in range(2000)], "acc": [(None, None, 1.0)]}
    found = chart.points_of(series)
    assert found["acc"] == [(None, 1.0, 1.0)]
    assert len(found["loss"]) < 500
    assert (found["loss"][0], found["loss"][-1]) == ((0.0, 1.0, 0.0), (1999.0, 2000.0, 999.5))


def test_a_first_step_of_zero_is_no_number_of_a_line() -> None:
    points = chart.points_of({"loss": [(float(step), None, 1.0) for step in (0, 100, 200)]})["loss"]
    assert chart.on_one_axis([points]) == (True, [[(0.0, 1.0), (100.0, 1.0), (200.0, 1.0)]])
    none = [(None, 1.0, 2.0), (None, 2.0, 2.0)]
    assert chart.on_one_axis([points, none, []])[0] is False, "one axis, one meaning"


def test_a_cell_without_series_has_no_curve() -> None:
    assert chart.points_of({}) == {}
    assert chart.curve("a", [[]]).parts == ()


def test_the_band_is_the_range_over_seeds() -> None:
    (part,) = chart.curve("a", [line(5), line(5, 3.0)]).parts
    assert [(at.mean, at.low, at.high, at.n) for at in part][2] == (4.0, 2.0, 6.0, 2)


def test_ten_thousand_lines_become_as_many_places_as_a_chart_can_show() -> None:
    found = chart.curve("a", [line(10_000)])
    assert len(found.places) <= chart.MOST_POINTS + 1
    assert found.places[-1].mean > 9_900


def test_nan_cuts_the_curve_and_is_never_averaged() -> None:
    points = [(0.0, 1.0), (1.0, 2.0), (2.0, math.nan), (3.0, 4.0)]
    found = chart.curve("a", [points])
    assert [len(part) for part in found.parts] == [2, 1]
    assert all(math.isfinite(at.mean) for at in found.places)


def test_a_chart_escapes_names_and_draws_grey_what_no_eye_can_tell_apart() -> None:
    drawn = chart.lines([chart.curve(f"<b>{n}", [line(4)]) for n in range(12)], "step", "a<b")
    assert "<b>0" not in drawn and "&lt;b&gt;0" in drawn and "a&lt;b" in drawn
    assert drawn.count('class="rest"') == 12 - chart.COLOURS


def test_names_stand_at_the_ends_of_few_curves_and_above_each_other() -> None:
    flat = [chart.curve(f"cell_{n}", [line(4, 0.001 * n)]) for n in range(8)]
    tops = [float(at) for at in re.findall(r'class="at c\d" style="top:([\d.]+)%', ends(flat))]
    assert len(tops) == 8 and min(tops) >= 0 and max(tops) <= 100
    assert all(before - after > 6.9 for before, after in pairwise(tops))
    many = [*flat, chart.curve("ninth", [line(4)])]
    assert 'class="at' not in ends(many), "somebody has to make a legend"


def ends(curves: list[chart.Curve]) -> str:
    return chart.lines(curves, "step", "loss")


def test_long_names_stand_above_a_chart_too_for_a_phone_and_are_shortened_at_the_ends() -> None:
    drawn = ends([chart.curve("a_name_that_is_much_too_long_for_a_phone", [line(4)])])
    assert "a_name_that_is_much_too_long_for_a_phone</span>" in drawn
    assert re.search(r'class="at c0" [^>]+>a_name…\w+<', drawn)
    assert 'class="keys"' not in ends([chart.curve("short", [line(4)])])


@pytest.mark.parametrize("last", [1200.0, 150.0, 12.0, 5900.0])
def test_the_labels_of_an_axis_are_whole_and_few_enough_for_a_phone(last: float) -> None:
    drawn = ends([chart.curve("a", [[(0.0, 1.0), (last, 2.0)]])])
    labels = re.findall(r'class="x" style="left:([\d.]+)%">([^<]+)<', drawn)
    assert len(labels) >= 2 and sum(len(text) + 1 for _, text in labels) <= 24
    assert all(float(text) / last * 100 == pytest.approx(float(at), abs=0.1) for at, text in labels)


def test_dots_have_their_names_beside_them_and_none_upon_another() -> None:
    apart = [Dot(f"cell_{n}", float(n % 2), float(n)) for n in range(8)]
    assert len(re.findall(r'<b class="(right|left)">cell_\d', chart.scatter(apart, "h", "m"))) == 8
    same = [Dot(f"cell_{n}", 1.0, 1.0) for n in range(9)]
    sides = re.findall(r'<b class="(right|left|above|below)">', chart.scatter(same, "h", "m"))
    assert sorted(sides) == ["above", "below", "left", "right"]


def test_nothing_is_no_chart() -> None:
    assert chart.lines([], "step", "loss") == ""
    assert chart.scatter([Dot("a", 1, 2)], "h", "m") == ""


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0.2, 0.21), (-5, 1e6), (1e-9, 3e-9), (3, 3), (0, math.inf)]
)
def test_ticks_are_few_and_within_the_axis(low: float, high: float) -> None:
    found = chart.ticks(low, high)
    assert 1 <= len(found) <= 8
    assert all(low - 1e-12 <= tick <= high + 1e-9 * abs(high) for tick in found)


def test_a_curve_of_one_value_is_drawn_at_a_place_that_exists() -> None:
    drawn = chart.lines([chart.curve("a", [[(1.0, 0.5)]])], "step", "loss")
    assert "polyline" in drawn and "nan" not in drawn and "inf" not in drawn


def test_missing_reports_are_a_gap_and_reports_that_are_rare_are_none() -> None:
    often = [(float(x), 1.0) for x in range(1000) if not 300 < x < 400]
    assert len(chart.curve("a", [often]).parts) == 2
    rare = [(float(x), 1.0) for x in range(0, 10_000, 500)]
    assert len(chart.curve("a", [rare]).parts) == 1
    assert len(chart.curve("a", [[(1.0, 1.0), (900.0, 2.0)]]).parts) == 1
