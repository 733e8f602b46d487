"""What a plan says of one queue and one box, with its paths as they are on this box."""

from __future__ import annotations

from boxcar.shared import paths
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Plan
from boxcar.shared.paths import DurablePaths, ScratchPaths


def box_of(made: Plan, queue: str) -> str:
    """The box that has the queue. Raises InputError for a queue that is not in the plan."""
    if queue not in made.queues:
        known = ", ".join(made.queues)
        raise InputError(f"this release has no queue {queue!r}; it has {known}")
    return made.queues[queue]


def tier(made: Plan) -> DurablePaths:
    """Raises DamagedError for a path that is none here."""
    return DurablePaths(paths.on_box(made.durable_dir), made.run)


def scratch(made: Plan, box: str) -> ScratchPaths:
    """Raises InputError for a box that is not in the plan, DamagedError as above."""
    try:
        data_dir = made.box(box).data_dir
    except KeyError:
        raise InputError(f"this release has no box {box!r}") from None
    return ScratchPaths(paths.on_box(data_dir), made.run)
