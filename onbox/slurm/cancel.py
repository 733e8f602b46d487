"""End the jobs of this run, and of nobody else. Whether they are gone shows the next look."""

from __future__ import annotations

from boxcar.shared.wire import asks
from onbox.slurm import commands, squeue, submit

# Of words of one command.
_AT_ONCE = 500


def answer(question: asks.SlurmCancel, run: asks.RunOnBox) -> asks.SlurmCancelled:
    """What was there to cancel. The exit code of scancel proves nothing: it is 0 for any number.

    Raises TemporaryError where Slurm is silent, or a submit has no outcome yet.
    """
    submit.settle(run.tier)
    alive = [task.task for task in squeue.look_now(run.tier).tasks if task.waits or task.has_nodes]
    for first in range(0, len(alive), _AT_ONCE):
        commands.run("scancel", *alive[first : first + _AT_ONCE])
    if alive:
        squeue.forget(run.tier)
    return asks.SlurmCancelled(tuple(alive))
