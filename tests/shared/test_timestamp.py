from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared import timestamp

MOMENTS = st.datetimes(
    min_value=datetime(1970, 1, 2),
    max_value=datetime(9999, 12, 30),
    timezones=st.timezones() | st.just(timezone.utc),
)


@given(MOMENTS)
def test_a_time_is_utc_with_milliseconds_and_reads_back(moment: datetime) -> None:
    text = timestamp.utc(moment)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    lost = moment.astimezone(timezone.utc) - timestamp.parse_utc(text)
    assert timedelta(0) <= lost < timedelta(milliseconds=1)


@given(MOMENTS, MOMENTS)
def test_times_sort_as_their_texts_do(one: datetime, other: datetime) -> None:
    texts = timestamp.utc(one), timestamp.utc(other)
    assert sorted(texts) == sorted(texts, key=timestamp.parse_utc)


def test_now_is_a_time() -> None:
    before = datetime.now(timezone.utc) - timedelta(milliseconds=1)
    assert before <= timestamp.parse_utc(timestamp.utc_now()) <= datetime.now(timezone.utc)


@pytest.mark.parametrize(
    "text",
    [
        *("", "Z", "now", "2026-11-20Z", "2026-11-20T10:00:00.000", "2026-11-20T10:00:00+00:00"),
        *("2026-11-20T10:00:00+02:00Z", "2026-13-20T10:00:00.000Z", "2026-11-20T25:00:00.000Z"),
    ],
)
def test_what_is_no_utc_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        timestamp.parse_utc(text)


def test_seconds_lie_between_two_times_and_never_below_zero() -> None:
    earlier, later = "2026-11-20T23:59:59.500Z", "2026-11-21T00:00:01.000Z"
    assert timestamp.seconds_between(earlier, later) == 1.5
    assert timestamp.seconds_between(later, earlier) == 0.0
