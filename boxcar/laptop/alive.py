"""What still works on the boxes: agents, and attempts that outlived theirs. Asked by their locks.

Not covered: a file system that does not show other hosts' locks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from boxcar.formats import lock
from boxcar.laptop.project import Project
from boxcar.laptop.verdict import Missing


def alive(project: Project, cells: Iterable[str]) -> tuple[Missing, ...]:
    """Everything that is at work, or that cannot be asked, and the command that ends it."""
    agents = tuple(row for path in _locks(project) for row in _asked(path, _agent(path)))
    return agents or tuple(
        row
        for cell in cells
        for box in project.plan.boxes
        for row in _asked(project.scratch(box.name).log(cell), _attempt(cell, box.name))
    )


@contextlib.contextmanager
def kept_still(project: Project) -> Iterator[tuple[Missing, ...]]:
    """Hold the lock of every queue, so that no agent starts meanwhile; those that were not free."""
    with contextlib.ExitStack() as held:
        taken = []
        for path in _locks(project):
            fd = lock.try_hold(path)
            if fd is None:
                taken.append(_agent(path))
            else:
                held.callback(os.close, fd)
        yield tuple(taken)


def _locks(project: Project) -> list[Path]:
    """Those of the plan's queues, and of queues that only an earlier release had."""
    folder = project.durable.lock("x").parent
    if not folder.is_dir():
        return []
    planned = {project.durable.lock(queue) for queue in project.plan.queues}
    return sorted(planned | set(folder.glob("*.lock")))


def _asked(path: Path, row: Missing) -> Iterator[Missing]:
    try:
        if lock.is_held(path):
            yield row
    except OSError as error:
        yield Missing(row.cell, f"{path}: cannot be asked whether it is held: {error}", "Mend that")


def _agent(path: Path) -> Missing:
    what = f"the agent of {path.stem} is at work"
    return Missing(None, what, "invoke drain (it finishes its cell), or invoke stop")


def _attempt(cell: str, box: str) -> Missing:
    what = f"still runs on {box}, and its agent is dead"
    return Missing(cell, what, "invoke launch (it takes the cell over), then invoke stop")
