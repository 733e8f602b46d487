"""What still works on the boxes, by its locks: agents, and attempts that outlived theirs."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from boxcar.laptop.run.missing import Missing
from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared.disk import lock
from boxcar.shared.message import Command

DRAIN_OR_STOP = Command("drain", note="it finishes its cell", or_else=Command("stop"))
_TAKE_OVER = Command("launch", note="it takes the cell over; then stop it")


def alive(run: OpenRun, cells: Iterable[str]) -> tuple[Missing, ...]:
    """Everything that is at work, or that cannot be asked, and the command that ends it."""
    boxes = run.boxes
    agents = tuple(
        row
        for queue in _queues(run)
        for row in _asked(functools.partial(boxes.is_agent_alive, queue), _agent(queue))
    )
    return agents or tuple(
        row
        for cell in cells
        for box in (known.name for known in run.plan.boxes)
        for row in _asked(functools.partial(boxes.is_attempt_alive, box, cell), _attempt(cell, box))
    )


@contextlib.contextmanager
def kept_still(run: OpenRun) -> Iterator[tuple[Missing, ...]]:
    """Hold the lock of every queue, so that no agent starts meanwhile; those that were not free.

    For locks on this machine. A box over ssh holds its own while it ends (`onbox answer`, end).
    """
    with contextlib.ExitStack() as held:
        taken = []
        for path in _locks(run):
            fd = lock.try_hold(path)
            if fd is None:
                taken.append(_agent(path.stem))
            else:
                held.callback(os.close, fd)
        yield tuple(taken)


def _locks(run: OpenRun) -> list[Path]:
    """Those of the plan's queues, and of queues that only an earlier release had."""
    folder = run.tier.lock("x").parent
    if not folder.is_dir():
        return []
    planned = {run.tier.lock(queue) for queue in run.plan.queues}
    return sorted(planned | set(folder.glob("*.lock")))


def _queues(run: OpenRun) -> list[str]:
    on_tier = (path.stem for path in run.tier.queues.glob("*.txt"))
    return sorted({*run.plan.queues, *on_tier, *(path.stem for path in _locks(run))})


def _asked(ask: Callable[[], bool | None], row: Missing) -> Iterator[Missing]:
    try:
        found, why = ask(), "its box does not answer"
    except OSError as error:
        found, why = None, f"{error.filename}: {error.strerror}"
    if found:
        yield row
    elif found is None:
        yield Missing(row.cell, f"it cannot be asked whether {row.what}: {why}", Command("status"))


def _agent(queue: str) -> Missing:
    what = f"the agent of {queue} is at work"
    return Missing(None, what, DRAIN_OR_STOP)


def _attempt(cell: str, box: str) -> Missing:
    what = f"still runs on {box}, but its agent is dead"
    return Missing(cell, what, _TAKE_OVER)
