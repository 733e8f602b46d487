"""The meter-stop verb of a cluster: the run's jobs are cancelled, looked at until they are gone,
and then its secrets go.

Only jobs that name this run on this tier are ever touched. Files stay: the site's file system
outlives every job.

Not covered: what the used hours cost in fair share. Only the site knows.
"""

from __future__ import annotations

import time
from typing import ClassVar

from boxcar.laptop.boxes.of_slurm import SlurmBoxes
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.open_run import Tell
from boxcar.laptop.teardown.beside import OnBoxes
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.still_running import DRAIN_OR_STOP
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.message import Command
from boxcar.shared.record import dataclass
from boxcar.shared.wire import box_asks, cluster_asks

# KillWait of a site may be minutes, and squeue is asked every 30 s.
GONE_WITHIN_S = 300.0
_LOOK_EVERY_S = 2.0


@dataclass(frozen=True)
class SlurmMeter:
    """See site.Meter. `tell` hears of the jobs that are cancelled."""

    project: Project
    boxes: SlurmBoxes
    tell: Tell
    fix: ClassVar[Command | str] = Command("status", note="Slurm has to answer first")

    def problems(self) -> list[str]:
        """Where nobody knows what runs, nothing is torn down."""
        return self.boxes.doubts()

    def price(self) -> list[str]:
        paths = dict.fromkeys(box.credentials for box in self.project.plan.boxes)
        waiting = [f"the job {task.task}, which waits" for task in self.boxes.tasks() if task.waits]
        profile, storage = self.project.profile, self.project.profile.storage
        lost = {storage.data} - set(profile.meter_stop.preserves)
        return [
            *(f"credentials: {path} on the login node" for path in paths),
            *waiting,
            *(f"{name}: {storage.tiers[name].path or 'of the nodes'}" for name in lost),
        ]

    def stays(self) -> list[str]:
        plan = self.project.plan
        data = dict.fromkeys(box.data_dir for box in plan.boxes)
        places = [f"{plan.durable_dir}/boxcar/{plan.run}", *(f"{folder}" for folder in data)]
        return [f"{place} on the cluster" for place in places]

    def beside(self, begun: Teardown | None) -> OnBoxes:
        """No box is ended: what is others' stays as it is."""
        return OnBoxes()

    def stop(self, steps: Steps) -> None:
        """Harmless to repeat. Raises TemporaryError where a job stays, or Slurm is silent."""
        plan = self.project.plan
        [first, *_] = plan.boxes
        tasks = self.boxes.ask(first.name, cluster_asks.SlurmCancel()).tasks
        if tasks:
            self.tell(f"cancelled: {', '.join(tasks)}")
            self._wait_until_gone(first.name)
        for box in plan.boxes:
            if box.name in steps.now.boxes:
                continue
            queues = tuple(queue for queue, at in plan.queues.items() if at == box.name)
            alive = self.boxes.ask(box.name, box_asks.End(queues, box.credentials)).alive
            if alive:
                named = ", ".join(str(at_work.queue or at_work.cell) for at_work in alive)
                raise TemporaryError(
                    f"{named} is at work though its job is gone, so nothing was ended",
                    DRAIN_OR_STOP,
                )
            steps.ended(box.name)

    def to_do(self) -> str | None:
        """Nothing: Boxcar itself has cancelled the jobs."""
        return None

    def _wait_until_gone(self, box: str) -> None:
        """What scancel said proves nothing: squeue must have no such job any more."""
        until = time.monotonic() + GONE_WITHIN_S
        while True:
            looked = self.boxes.ask(box, cluster_asks.SlurmLook())
            left = [task.task for task in looked.tasks if task.waits or task.has_nodes]
            if not looked.problem and not left:
                return
            if time.monotonic() > until:
                raise TemporaryError(
                    f"{looked.problem or ', '.join(left) + ' does not end'}: the run's files and "
                    "secrets stay. Look at it on the login node (squeue --me), then",
                    Command("down"),
                )
            time.sleep(_LOOK_EVERY_S)
