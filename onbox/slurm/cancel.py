"""End the jobs of this run, and of nobody else. Whether they are gone shows the next look."""

from __future__ import annotations

from boxcar.shared.wire import cluster_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.slurm import commands, squeue, submit

# Of words of one command.
_AT_ONCE = 500


def answer(question: cluster_asks.SlurmCancel, run: RunOnBox) -> cluster_asks.SlurmCancelled:
    """What was there to cancel. The exit code of scancel proves nothing: it is 0 for any number.

    Raises TemporaryError where Slurm is silent, or a submit has no outcome yet.
    """
    submit.settle(run.tier)
    alive = [task for task in squeue.look_now(run.tier).tasks if task.waits or task.has_nodes]
    if question.waiting_of:
        alive = [task for task in alive if task.waits and task.queue in question.waiting_of]
    tasks = [task.task for task in alive]
    for first in range(0, len(tasks), _AT_ONCE):
        # Not with --state=PENDING, against a task that starts now: of an array of which nothing has
        # started, that cancels all other tasks too (seen in 22.05). Who starts now gets TERM.
        commands.run("scancel", *tasks[first : first + _AT_ONCE])
    if tasks:
        squeue.forget(run.tier)
    return cluster_asks.SlurmCancelled(tuple(tasks))
