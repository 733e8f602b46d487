from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.cell import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("2d", 172_800),
     ("1d2h3m4s", 93_784), ("0h1s", 1)],
)  # fmt: skip
def test_a_time_is_read_in_seconds(text: str, seconds: int) -> None:
    assert duration.parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "90", "0s", "1.5h", "-1h", "1m1h", "1h1h", "1H", "1 h", " 1h", "1h\n", "١s", "1w"]
)
def test_another_text_is_refused_with_what_is_one(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time such as 90s, 30m, 2h or 1h30m"):
        duration.parse_duration(text)


@given(st.integers(1, 10**9))
def test_it_is_spelled_as_it_is_read(seconds: int) -> None:
    assert duration.parse_duration(duration.spell_duration(seconds)) == seconds


def test_it_is_spelled_in_short() -> None:
    spelled = [duration.spell_duration(time_s) for time_s in (60, 5400, 86_400, 61)]
    assert spelled == ["1m", "1h30m", "1d", "1m1s"]
