"""Where an agent works: what a plan says of its queue and box, with the paths as they are here."""

from __future__ import annotations

from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Plan
from boxcar.shared.files.release import Release
from boxcar.shared.paths import DataPaths, DurablePaths, ScratchPaths
from boxcar.shared.record import dataclass, replace
from boxcar.shared.sentence import _


@dataclass(frozen=True)
class Place:
    """Where one agent works: the same for every cell of its queue."""

    plan: Plan
    release: Path
    training_zip: str
    queue: str
    box: str
    durable: DurablePaths
    scratch: ScratchPaths

    @property
    def data(self) -> str:
        """What {data} stands for, "" where the job has none."""
        has_data = self.plan.data or self.plan.data_urls
        return str(self.scratch.data_of(self.release.name)) if has_data else ""

    @property
    def data_store(self) -> DataPaths:
        """Where what its links lead to is stored."""
        on_tier = self.plan.is_data_on_tier
        return DataPaths(self.durable.durable_dir if on_tier else self.scratch.data_dir)


def of_queue(plan: Plan, folder: Path, release: Release, queue: str) -> Place:
    """Raises InputError for a queue that is not in the plan, DamagedError for a path that is none.

    `folder` is the release's own.
    """
    box = box_of(plan, queue)
    # Of its cells the queue file tells here, and ten thousand take 6 MB.
    light = replace(plan, cells=())
    return Place(light, folder, release.training, queue, box, tier(plan), scratch(plan, box))


def box_of(plan: Plan, queue: str) -> str:
    """The box that has the queue. Raises InputError for a queue that is not in the plan."""
    if queue not in plan.queues:
        known = ", ".join(plan.queues)
        raise InputError(
            _("this release has no queue {queue!r}; it has {known}", queue=queue, known=known)
        )
    return plan.queues[queue]


def tier(plan: Plan) -> DurablePaths:
    """Raises DamagedError for a path that is none here."""
    return DurablePaths(paths.on_box(plan.durable_dir), plan.run)


def scratch(plan: Plan, box: str) -> ScratchPaths:
    """Raises InputError for a box that is not in the plan, DamagedError as above."""
    try:
        data_dir = plan.box(box).data_dir
    except KeyError:
        raise InputError(_("this release has no box {box!r}", box=box)) from None
    return ScratchPaths(paths.on_box(data_dir), plan.run)
