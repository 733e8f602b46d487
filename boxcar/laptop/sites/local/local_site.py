"""A run on this machine: what its agents write is read where it lies."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.boxes.local import LocalBoxes
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.log_source import FileLog, LogSource
from boxcar.laptop.run.look import is_planned
from boxcar.laptop.run.open_run import Tell
from boxcar.laptop.run.view import CellView
from boxcar.laptop.sites.local.end_local import LocalMeter
from boxcar.laptop.sites.site import Site
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.files.plan import Cell
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class LocalSite(Site):
    """See Site."""

    boxes: LocalBoxes
    poll_s: ClassVar[float] = 2.0
    needs_audit: ClassVar[bool] = False

    @classmethod
    def of(cls, project: Project, tell: Tell) -> LocalSite:
        return cls(project, LocalBoxes(project))

    @property
    def meter(self) -> LocalMeter:
        return LocalMeter(self.project)

    @property
    def has_mounted_tier(self) -> bool:
        return False

    def log_of(self, cell: CellView) -> LogSource | None:
        """The box has the log while the cell runs; the durable tier and the results after it."""
        places = [self.tier.cell(cell.name) / f"{cell.name}.log", self.pulled_log(cell.name)]
        if is_planned(self, cell.box):
            places.insert(0, self.project.scratch(cell.box).log(cell.name))
        return next((FileLog(path) for path in places if path.is_file()), None)

    def _cell_folders(self, cell: Cell) -> Iterator[Path]:
        """The box has them while the cell runs."""
        for box in dict.fromkeys(
            [self.plan.queues[cell.queue], *(b.name for b in self.plan.boxes)]
        ):
            yield self.project.scratch(box).out(cell.name)
        yield self.tier.cell(cell.name)
        yield self.results.cell(cell.name)

    def is_tier_out_of_sight(self) -> bool:
        return self.boxes.is_tier_out_of_sight

    def python(self) -> str:
        """The box's own, because the box is this machine."""
        return self.plan.training_python

    def folders_here(self, boxes: Collection[str]) -> dict[str, Path]:
        known = [box for box in self.plan.boxes if box.name in boxes]
        scratch: dict[str, Path] = {
            Sentence("planning.scratch_of", box=box.name): Path(box.data_dir) for box in known
        }
        return {Sentence("planning.durable_tier"): self.tier.root} | scratch
