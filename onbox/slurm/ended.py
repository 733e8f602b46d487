"""How the job ended that had a queue before, in Slurm's own words: PREEMPTED, NODE_FAIL, TIMEOUT,
OUT_OF_MEMORY, CANCELLED, REQUEUED.

With accounting sacct knows each start of a task. Without, squeue knows for some minutes how another
job ended, and of an earlier start of the own task only that it was queued again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from boxcar.shared.errors import BoxcarError
from boxcar.shared.paths import DurablePaths
from boxcar.shared.slurm import lease
from boxcar.shared.slurm.lease import Lease
from boxcar.shared.slurm.submitted import Task
from onbox.slurm import commands, squeue

_REQUEUED = "REQUEUED"
# Of a job that Slurm has no more, and of which it does not say how it ended.
FORGOTTEN = "FORGOTTEN"
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
    states = _states(text, before)
    at = before.restarts
    return states[at] if at < len(states) and states[at] in _TOLD else None


def in_squeue(states: Mapping[str, str], before: Lease) -> str | None:
    state = states.get(before.named)
    return state if state in _TOLD else None


def _states(text: str, of: Lease) -> list[str]:
    rows = [line.split("|", 1) for line in text.splitlines() if "|" in line]
    # `CANCELLED by 1000` ends in who it was.
    return [state.split()[0] for name, state in rows if name == of.named and state.split()]


# --- Whether a queue's job is over for good, as the other members of its pool have to know.

_JOB_STATE = re.compile(r"\bJobState=(\w+)")
# Of a controller that answers: "Invalid job id specified", of one task "Job 7_3 not found".
_NO_SUCH_JOB = ("invalid job id", "not found")


def of_queue(owner: Lease, tasks: Sequence[Task]) -> str | None:
    """How the job ended that had the queue last: a state of lease.ENDED, or FORGOTTEN. `tasks` is
    what squeue has said just now of the run.

    None where another start of the queue runs or is to come, and where Slurm does not say that the
    job is over: neither its silence nor what only squeue leaves out proves it.
    """
    if any(task.queue in (owner.queue, None) and task.state not in lease.ENDED for task in tasks):
        return None
    state = {task.task: task.state for task in tasks}.get(owner.named)
    if state is not None:
        return state if state in lease.ENDED else None
    try:
        return _in_accounting(owner) or _by_controller(owner)
    except BoxcarError:
        return None


def _in_accounting(owner: Lease) -> str | None:
    said = commands.run("sacct", *_SACCT, owner.job, timeout_s=_TIMEOUT_S)
    last = _states(said.out, owner)[-1:] if said.code == 0 else []
    return last[0] if last and last[0] in lease.ENDED else None


def _by_controller(owner: Lease) -> str | None:
    said = commands.run("scontrol", "show", "job", owner.named, timeout_s=_TIMEOUT_S)
    if said.code:
        is_forgotten = any(words in said.said.lower() for words in _NO_SUCH_JOB)
        return FORGOTTEN if is_forgotten else None
    states = _JOB_STATE.findall(said.out)
    return states[-1] if states and all(state in lease.ENDED for state in states) else None
