"""Whether a scheduler starts a queue again and again for nothing. Pure.

A time limit shorter than a step and its checkpoint would go on for ever, and be paid for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from boxcar.shared.files.journal_chain import Event
from boxcar.shared.process import end_reason
from boxcar.shared.sentence import _

MOST_RESTARTS = 3
_RESTARTS = "SLURM_RESTART_COUNT"
# The batch script counts them, where a site forbids requeues.
_RESUBMITS = "BOXCAR_RESUBMITS"
_ADVANCES = ("cell.succeeded", "cell.synced", "cell.verified", "cell.failed")
# What the system ended, and what a kill left without a last word.
_INTERRUPTED = (end_reason.SIGNAL, None)


def restarts(environ: Mapping[str, str] = os.environ) -> int:
    """How often this job was started again: by the scheduler, and by a new submit of its own."""
    texts = [environ.get(name, "") for name in (_RESTARTS, _RESUBMITS)]
    return sum(int(text) for text in texts if text.isdigit())


def reason(events: Sequence[Event], count: int, checkpoint_at: str | None) -> str | None:
    """Why the queue is not to be run once more; None where it is.

    `count` is how often it was started again, `checkpoint_at` when the last live checkpoint was
    mirrored: a script may report no steps.
    """
    sessions = _sessions(events)[-MOST_RESTARTS:]
    if count < MOST_RESTARTS or len(sessions) < MOST_RESTARTS:
        return None
    if any(map(_has_advanced, sessions)) or (checkpoint_at or "") >= sessions[0][0].at:
        return None
    return _(
        "Slurm has restarted this queue {n} times, and no cell made a new step in the last {most} "
        "allocations: the time limit may be too short for a step and a checkpoint. Raise it "
        "(slurm: {{time: …}}), or save more often; then launch",
        n=count,
        most=MOST_RESTARTS,
    )


def _sessions(events: Sequence[Event]) -> list[list[Event]]:
    """The events of each agent that was interrupted, with only such steps as were new."""
    found: list[list[Event]] = []
    furthest: dict[tuple[str | None, str], float] = {}
    for event in events:
        if event.type == "agent.started":
            found.append([event])
        elif found and (event.type != "cell.progress" or _is_new(event, furthest)):
            found[-1].append(event)
    return [one for one in found if _ended_by(one) in _INTERRUPTED]


def _is_new(event: Event, furthest: dict[tuple[str | None, str], float]) -> bool:
    is_new = False
    for key, value in event.data.get("progress", {}).items():
        if key not in ("step", "epoch") or not isinstance(value, (int, float)):
            continue
        if value > furthest.get((event.cell, key), 0):
            furthest[event.cell, key] = value
            is_new = True
    return is_new


def _has_advanced(session: Sequence[Event]) -> bool:
    return any(event.type in ("cell.progress", *_ADVANCES) for event in session)


def _ended_by(session: Sequence[Event]) -> str | None:
    ends = [event for event in session if event.type == "agent.stopped"]
    return ends[-1].data.get("by") if ends else None
