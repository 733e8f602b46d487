from __future__ import annotations

from dataclasses import replace

import pytest

from boxcar.laptop.results.accept import is_due
from boxcar.laptop.run.view import CellView
from boxcar.shared.files.receipt import LAPTOP, Accepted, CellVerdict, Finding
from boxcar.shared.state import CellRecord, CellState, Failed, Queued, Running, Synced, Verified

AT, SHA = "2026-11-22T11:00:00.000Z", "0a" * 32
FAILED = Failed(1, AT, "BAD-ART", "m.pkl would execute code", "r1", is_final=False)
PROVEN = CellVerdict("a", "q1", SHA, findings=(Finding("m.pkl", "pickle"),))
MADE = Accepted("tiny", "a", SHA, AT, ("m.pkl",), "0.1.0")


def seen(state: CellState, accepted: Accepted | None = None) -> CellView:
    fields = {"name": "a", "queue": "q1", "box": "box-a", "cfg": "a", "task": "t"}
    record = CellRecord(state, attempts=1)
    return CellView(**fields, epochs=1, index=0, record=record, accepted=accepted)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cell", "is_it"),
    [
        (seen(FAILED), True),
        (seen(replace(FAILED, failure="UNCHECKED", is_kept=True)), True),
        (seen(Verified(1, AT, SHA)), False),
        (seen(Verified(1, AT, SHA, by=LAPTOP), MADE), False),
        (seen(Verified(1, AT, SHA, by=LAPTOP)), True),  # what was written is damaged or gone
        (seen(Running(2, AT)), False),
        (seen(Synced(1, AT, SHA)), False),
        (seen(Queued()), False),
        (replace(seen(FAILED), record=None), False),
    ],
)
def test_a_box_is_told_of_a_proven_result_that_it_calls_failed(cell: CellView, is_it: bool) -> None:
    assert is_due(cell, PROVEN) is is_it


@pytest.mark.parametrize(
    "verdict",
    [
        replace(PROVEN, missing=("m.pkl: is cut off",)),
        replace(PROVEN, missing=("m.pkl: is cut off",), because="it diverges"),
        replace(PROVEN, manifest_sha256=None, findings=(), is_dropped=True),
        replace(PROVEN, manifest_sha256=None),
    ],
)
def test_what_is_not_proven_here_is_never_accepted(verdict: CellVerdict) -> None:
    assert not is_due(seen(FAILED), verdict)
