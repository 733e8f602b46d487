"""Means and intervals, against hand calculations."""

from __future__ import annotations

import math

import pytest

from boxcar.laptop.view.report import groups
from boxcar.laptop.view.report.groups import Spread, difference_of, spread_of


def test_mean_and_standard_deviation_of_a_sample() -> None:
    found = spread_of([2.0, 4.0, 9.0])
    assert found == Spread(3, 5.0, pytest.approx(math.sqrt(13)))  # (9 + 1 + 16) / 2


def test_one_value_has_no_spread_and_none_has_no_mean() -> None:
    assert spread_of([3.0]) == Spread(1, 3.0, None)
    assert spread_of([]) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_never_averaged(value: float) -> None:
    with pytest.raises(ValueError, match="expected finite"):
        spread_of([1.0, value])


def test_the_interval_is_welchs_by_hand() -> None:
    # Variances 1 and 4, three seeds each: standard error sqrt(5/3); degrees of freedom
    # (5/3)^2 / (1/18 + 16/18) = 2.94, so those of 2: 4.303.
    found = difference_of(Spread(3, 10.0, 1.0), Spread(3, 7.0, 2.0))
    assert found.mean == 3.0
    assert found.half_width == pytest.approx(4.303 * math.sqrt(5 / 3))


@pytest.mark.parametrize("sides", [(2, 3), (3, 2), (1, 9)])
def test_fewer_than_three_seeds_have_no_interval(sides: tuple[int, int]) -> None:
    one, base = (Spread(n, 1.0, 0.5 if n > 1 else None) for n in sides)
    assert difference_of(one, base).half_width is None


def test_values_that_are_all_the_same_have_an_interval_of_nothing() -> None:
    assert difference_of(Spread(3, 2.0, 0.0), Spread(3, 1.0, 0.0)).half_width == 0.0


@pytest.mark.parametrize(
    ("degrees", "t"),
    [(1, 12.706), (4, 2.776), (4.99, 2.776), (30, 2.042), (35, 2.042), (500, 1.98)],
)
def test_degrees_of_freedom_are_rounded_down(degrees: float, t: float) -> None:
    assert groups.t_95(degrees) == t
