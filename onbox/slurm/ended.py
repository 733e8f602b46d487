"""How the job ended that had a queue before, in Slurm's own words: PREEMPTED, NODE_FAIL, TIMEOUT,
OUT_OF_MEMORY, CANCELLED, REQUEUED.

With accounting sacct knows each start of a task. Without, squeue knows for some minutes how another
job ended, and of an earlier start of the own task only that it was queued again.
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.errors import BoxcarError
from boxcar.shared.paths import DurablePaths
from boxcar.shared.slurm import lease
from boxcar.shared.slurm.lease import Lease
from onbox.slurm import commands, squeue

_REQUEUED = "REQUEUED"
_TOLD = (*(state for state in lease.ENDED if state not in ("COMPLETED", "FAILED")), _REQUEUED)
_TIMEOUT_S = 10.0
# `sacct -D` shows each start of a task; -X leaves the steps out.
_SACCT = ("-n", "-P", "-X", "-D", "-o", "JobID,State", "-j")


def state_of(before: Lease, own: Lease, tier: DurablePaths) -> str | None:
    """None where nobody knows, and where its script came to its own end."""
    try:
        said = commands.run("sacct", *_SACCT, before.job, timeout_s=_TIMEOUT_S)
        if said.code == 0 and (found := in_sacct(said.out, before)):
            return found
        if before.named == own.named:
            return _REQUEUED
        return in_squeue({task.task: task.state for task in squeue.look_now(tier).tasks}, before)
    except BoxcarError:
        return _REQUEUED if before.named == own.named else None


def in_sacct(text: str, before: Lease) -> str | None:
    """Of that start of the task; its rows are in their order."""
    rows = [line.split("|", 1) for line in text.splitlines() if "|" in line]
    # `CANCELLED by 1000` ends in who it was.
    states = [state.split()[0] for name, state in rows if name == before.named and state.split()]
    at = before.restarts
    return states[at] if at < len(states) and states[at] in _TOLD else None


def in_squeue(states: Mapping[str, str], before: Lease) -> str | None:
    state = states.get(before.named)
    return state if state in _TOLD else None
