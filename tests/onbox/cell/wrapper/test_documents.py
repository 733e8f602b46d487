from __future__ import annotations

from dataclasses import fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.files import codec
from boxcar.shared.files.attempt import Done, Running
from onbox.cell.wrapper import documents

TEXT = st.text(st.characters())  # half surrogate pairs too: a name need not be UTF-8


def written(record: Any) -> dict[str, Any]:
    """The fields as the wrapper gives them: those that came later only where they say something."""
    known = {field.name: getattr(record, field.name) for field in fields(record)}
    later = {field.name: field.default for field in fields(record) if field.metadata}
    return {
        name: value
        for name, value in known.items()
        if name != "extra" and not (name in later and value == later[name])
    }


@given(TEXT, st.integers(1), st.integers(0, 2**40))
def test_who_runs_an_attempt_is_spelled_as_by_the_codec(text: str, pid: int, at: int) -> None:
    record = Running(text, 1, pid, "123", text, "2026-11-22T00:00:00.000Z", at, text)
    assert documents.running(written(record)) == codec.to_document(record)


@given(TEXT, st.integers(-64, 255), st.floats(0, 1e9), st.booleans(), st.none() | st.integers(0))
def test_how_it_ended_is_spelled_as_by_the_codec(
    text: str, rc: int, seconds: float, was_told: bool, limit_s: int | None
) -> None:
    now = "2026-11-22T00:00:00.000Z"
    record = Done(text, 2, rc, now, now, seconds, 0, was_told, text, over_time_s=limit_s)
    assert documents.done(written(record)) == codec.to_document(record)
