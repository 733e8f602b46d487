from __future__ import annotations

import math

from boxcar.laptop.trackers.exported_cell import points_of_series


def test_what_is_reported_at_one_step_is_one_point_and_a_gap_stays_a_gap() -> None:
    found = points_of_series(
        {
            "loss": [(1.0, 5.0, 1.0), (2.0, 6.0, math.nan), (3.0, 7.0, 0.5)],
            "acc": [(1.0, 5.0, 0.1), (3.0, 7.0, 0.3)],
        },
        0.0,
        9.0,
    )
    assert [(point.step, point.at) for point in found] == [(1, 5.0), (2, 6.0), (3, 7.0)]
    assert dict(found[0].values) == {"loss": 1.0, "acc": 0.1}
    assert math.isnan(found[1].values["loss"]) and "acc" not in found[1].values


def test_a_step_that_is_said_twice_has_what_was_said_last() -> None:
    found = points_of_series(
        {"loss": [(1.0, None, 1.0), (2.0, None, 1.0), (2.0, None, 2.0)]}, 0.0, 9.0
    )
    assert [(point.step, point.values["loss"]) for point in found] == [(1, 1.0), (2, 2.0)]


def test_what_has_no_whole_step_counts_by_its_number() -> None:
    halves = points_of_series({"loss": [(0.5, None, 1.0), (1.0, None, 2.0)]}, 0.0, 9.0)
    none = points_of_series({"loss": [(None, None, 1.0), (None, None, 2.0)]}, 0.0, 9.0)
    assert [point.step for point in halves] == [point.step for point in none] == [1, 2]


def test_a_point_has_its_time_else_that_of_the_one_before() -> None:
    found = points_of_series(
        {"loss": [(1.0, None, 1.0), (2.0, 10.0, 1.0), (3.0, None, 1.0)]}, 5.0, 20.0
    )
    assert [point.at for point in found] == [5.0, 10.0, 10.0]


def test_where_nothing_has_a_time_points_are_spread_over_the_training() -> None:
    series = [(None, None, float(n)) for n in range(4)]
    found = points_of_series({"loss": series}, 100.0, 140.0)
    assert [point.at for point in found] == [110.0, 120.0, 130.0, 140.0]
    timed = [(1.0, 101.0, 1.0)]
    for both in ({"acc": timed, "loss": series}, {"loss": series, "acc": timed}):
        assert points_of_series(both, 100.0, 140.0)[0].at == 101.0, "a time that was told counts"
