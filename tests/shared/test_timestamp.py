"""Times, paces and cadences."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared import timestamp
from boxcar.shared.artifacts import cadence
from boxcar.shared.pace import Pace

MOMENTS = st.datetimes(
    min_value=datetime(1970, 1, 2),
    max_value=datetime(9999, 12, 30),
    timezones=st.timezones() | st.just(timezone.utc),
)


@given(MOMENTS)
def test_a_time_is_utc_with_milliseconds_and_reads_back(moment):
    text = timestamp.utc(moment)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    lost = moment.astimezone(timezone.utc) - timestamp.parse_utc(text)
    assert timedelta(0) <= lost < timedelta(milliseconds=1)


@given(MOMENTS, MOMENTS)
def test_times_sort_as_their_texts_do(one, other):
    texts = timestamp.utc(one), timestamp.utc(other)
    assert sorted(texts) == sorted(texts, key=timestamp.parse_utc)


def test_now_is_a_time():
    before = datetime.now(timezone.utc) - timedelta(milliseconds=1)
    assert before <= timestamp.parse_utc(timestamp.utc_now()) <= datetime.now(timezone.utc)


@pytest.mark.parametrize(
    "text",
    [
        *("", "Z", "now", "2026-11-20Z", "2026-11-20T10:00:00.000", "2026-11-20T10:00:00+00:00"),
        *("2026-11-20T10:00:00+02:00Z", "2026-13-20T10:00:00.000Z", "2026-11-20T25:00:00.000Z"),
    ],
)
def test_what_is_no_utc_time_is_refused(text):
    with pytest.raises(ValueError):
        timestamp.parse_utc(text)


def test_seconds_lie_between_two_times_and_never_below_zero():
    earlier, later = "2026-11-20T23:59:59.500Z", "2026-11-21T00:00:01.000Z"
    assert timestamp.seconds_between(earlier, later) == 1.5
    assert timestamp.seconds_between(later, earlier) == 0.0


def test_the_first_look_knows_the_rate_since_the_beginning():
    assert Pace(100.0).rate(50, 110.0) == 5.0


def test_what_was_long_ago_does_not_count():
    pace = Pace(0.0)
    assert [pace.rate(done, at_s) for done, at_s in ((1000, 10.0), (1010, 20.0), (1020, 30.0))] == [
        100.0,
        50.5,
        1.0,
    ]


def test_looks_that_are_further_apart_than_the_window_have_a_rate():
    pace = Pace(0.0)
    assert [pace.rate(done, at_s) for done, at_s in ((200, 20.0), (800, 40.0), (800, 60.0))] == [
        10.0,
        30.0,
        0.0,
    ]


def test_a_look_at_the_same_moment_divides_by_nothing():
    assert Pace(1.0).rate(5, 1.0) == 0.0


@pytest.mark.parametrize(
    ("cost_s", "mtbf_s", "window_s"),
    [(30, 3 * 3600, 805), (10, 3600, 268), (120, 24 * 3600, 4554), (0, 3600, 0)],
)
def test_the_window_is_youngs(cost_s, mtbf_s, window_s):
    assert cadence.window_s(cost_s, mtbf_s) == pytest.approx(window_s, abs=0.5)
