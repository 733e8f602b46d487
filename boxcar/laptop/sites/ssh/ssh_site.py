"""A run on boxes over ssh: what its agents write is read from the mirror of what boxes reported."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.boxes.over_ssh import SshBoxes
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.log_source import BoxLog, FileLog, LogSource
from boxcar.laptop.run.look import is_planned
from boxcar.laptop.run.open_run import Tell
from boxcar.laptop.run.view import CellView
from boxcar.laptop.sites.site import Site
from boxcar.laptop.sites.ssh.end_over_ssh import SshMeter
from boxcar.laptop.tensorboard.places import OnBox, Place
from boxcar.shared.files.plan import SHARED
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class SshSite(Site):
    """See Site. `tell` hears what happens while a box is waited for."""

    poll_s: ClassVar[float] = 30.0
    needs_audit: ClassVar[bool] = True

    boxes: SshBoxes
    tell: Tell

    @classmethod
    def of(cls, project: Project, tell: Tell) -> SshSite:
        return cls(project, SshBoxes(project, tell), tell)

    @property
    def meter(self) -> SshMeter:
        return SshMeter(self.project, self.boxes, self.tell)

    @property
    def has_mounted_tier(self) -> bool:
        return self.plan.durable_scope == SHARED

    def log_of(self, cell: CellView) -> LogSource | None:
        """The box has the log while the cell runs, a shared tier once it was published, and the
        results after a pull.
        """
        pulled = self.pulled_log(cell.name)
        if pulled.is_file() and not cell.is_under_way:
            return FileLog(pulled)
        box = self._reader(cell)
        if box is None:
            return None
        log = BoxLog(self.boxes, box, self.tell, cell=cell.name)
        return log if log.is_there() else None

    def _reader(self, cell: CellView) -> str | None:
        """The box to ask for its log: its own, or any that sees what was published."""
        silent = self.boxes.silent()
        own = cell.box if is_planned(self, cell.box) else None
        if own not in {None, *silent} or not self.has_mounted_tier or not cell.is_verified:
            return own
        return next((box.name for box in self.plan.boxes if box.name not in silent), own)

    def events_on(self, box: str) -> Place | None:
        there = self.boxes.place(box, self.plan.box(box).data_dir)
        python = self.plan.training_python
        if python.startswith("~"):
            python = self.boxes.place(box, python).path
        cells = ScratchPaths(Path(there.path), self.plan.run).cells
        return OnBox(there.ssh, self.project.profile.hook, python, str(cells))

    def folders_here(self, boxes: Collection[str]) -> dict[str, Path]:
        return {}
