"""Whose doing an agent's end was: `by` in its last events. Nobody reads the sentence beside it."""

from __future__ import annotations

from boxcar.shared.files import control

DONE = "done"  # every line of its queue was run
SIGNAL = "signal"  # the system: the box may be going away
DRAIN, STOP = control.DRAIN, control.STOP  # a person
BUDGET = control.SPENT  # the instant until which new cells may begin
TURN = "turn"  # one cell for each start, and this was its cell
TROUBLE = "trouble"  # it could not go on


def of_v1(event_type: str, reason: str | None) -> str:
    """Of an end that was written before there was `by`: the sentences as they were then."""
    if event_type == "queue.done" or reason == "the queue is done":
        return DONE
    if (reason or "").startswith("told to end by "):
        return SIGNAL
    return {"asked to drain": DRAIN, "asked to stop": STOP}.get(reason or "", TROUBLE)
