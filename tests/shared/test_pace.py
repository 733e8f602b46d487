"""How fast something goes lately."""

from __future__ import annotations

from boxcar.shared.pace import Pace


def test_the_first_look_knows_the_rate_since_the_beginning() -> None:
    assert Pace(100.0).rate(50, 110.0) == 5.0


def test_what_was_long_ago_does_not_count() -> None:
    pace = Pace(0.0)
    assert [pace.rate(done, at_s) for done, at_s in ((1000, 10.0), (1010, 20.0), (1020, 30.0))] == [
        100.0,
        50.5,
        1.0,
    ]


def test_looks_that_are_further_apart_than_the_window_have_a_rate() -> None:
    pace = Pace(0.0)
    assert [pace.rate(done, at_s) for done, at_s in ((200, 20.0), (800, 40.0), (800, 60.0))] == [
        10.0,
        30.0,
        0.0,
    ]


def test_a_look_at_the_same_moment_divides_by_nothing() -> None:
    assert Pace(1.0).rate(5, 1.0) == 0.0
