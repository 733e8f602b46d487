"""A run on this machine: what its agents write is read where it lies."""

from __future__ import annotations

import errno
import json
import shutil
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.common import units
from boxcar.laptop.places.local_boxes import LocalBoxes
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.results import results_folder
from boxcar.laptop.run.log_source import FileLog, LogSource
from boxcar.laptop.run.look import is_planned
from boxcar.laptop.run.open_run import Tell
from boxcar.laptop.run.view import CellView
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.still_running import OnBoxes
from boxcar.shared import paths
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, Command, DamagedError, TemporaryError
from boxcar.shared.files.plan import Cell
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.record import dataclass

# The meter-stop verb of the local profile: the run's folders on each box and on the tier go away.
#
# Credentials first, then the boxes' scratch, the durable tier last. Only ever `boxcar/<run>` below
# a box's data folder or the tier is removed, and the credentials files that the plan names. A
# folder is renamed before it is removed, so that what a killed removal leaves is never taken for a
# run.
#
# Not covered: whether it may be done. That is the gate's.


GONE_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.5
# A file that a process of another host still has open lingers on NFS for a while.
_LINGERING = (errno.ENOTEMPTY, errno.EBUSY)


@dataclass(frozen=True)
class RunFolder:
    """`base/boxcar/<run>`, on a box or on the durable tier."""

    what: str
    base: Path
    run: str

    @property
    def path(self) -> Path:
        return paths.inside(self.base / "boxcar", self.run)

    @property
    def aside(self) -> Path:
        """Its name while it is being removed."""
        return self.base / "boxcar" / f".removing-{self.run}"


@dataclass(frozen=True)
class Places:
    """Everything that the verb removes, in this order."""

    credentials: tuple[Path, ...]
    folders: tuple[RunFolder, ...]


class LocalMeter:
    """See site.Meter."""

    fix: ClassVar[Command | str] = "Fix that, or move it away"

    def __init__(self, project: Project) -> None:
        self._project = project

    def places(self) -> Places:
        plan = self._project.plan
        scratches = (
            RunFolder(Sentence("planning.scratch_of", box=box.name), Path(box.data_dir), plan.run)
            for box in plan.boxes
        )
        tier = RunFolder(Sentence("planning.durable_tier"), Path(plan.durable_dir), plan.run)
        return Places(
            credentials=tuple(Path(box.credentials) for box in plan.boxes),
            folders=(*scratches, tier),
        )

    def problems(self) -> list[str]:
        """Links, or results that lie in what is removed."""
        found, results = self.places(), self._project.results.root
        told = [text for folder in found.folders for text in _folder_problems(folder, results)]
        for path in found.credentials:
            if (path.exists() or path.is_symlink()) and not _is_ours(path):
                told.append(f"{path}: expected a file of credentials that Boxcar wrote; it stays")
        return told

    def price(self) -> list[str]:
        found = self.places()
        return [
            *(Sentence("gate.credentials", file=path) for path in found.credentials),
            *(_price_of(folder) for folder in found.folders),
        ]

    def stays(self) -> list[str]:
        """Nothing but the results."""
        return []

    def beside(self, begun: Teardown | None) -> OnBoxes:
        """No box is ended: what is others' stays as it is."""
        return OnBoxes()

    def stop(self, steps: Steps) -> None:
        """Remove everything and wait until it is gone.

        Harmless to repeat, so `steps` is not needed. Raises TemporaryError where
        something lingers, BoxcarError where it cannot be removed.
        """
        found = self.places()
        for path in found.credentials:
            path.unlink(missing_ok=True)
        for folder in found.folders:
            _clear(folder.aside)
            if folder.path.exists():
                _refuse_links(folder)
                folder.path.rename(folder.aside)
                atomic.sync_folder(folder.aside.parent)
                _clear(folder.aside)

    def to_do(self) -> None:
        """Nothing is left to the person."""


def _price_of(folder: RunFolder) -> Sentence:
    size = units.size(results_folder.bytes_below(folder.path))
    return Sentence("gate.folder", what=folder.what, folder=folder.path, size=size)


def _clear(path: Path) -> None:
    """Remove a folder that has its name of removal already, and poll until it is gone."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while path.exists() or path.is_symlink():
        try:
            shutil.rmtree(path)
        except OSError as error:
            if error.errno not in _LINGERING:
                told = f"{path}: cannot be removed: {error}. Fix that, then again"
                raise BoxcarError(told, Command("down")) from error
            if time.monotonic() > deadline:
                raise TemporaryError(
                    f"{path}: is still there after {GONE_WITHIN_S:.0f} s ({error}); something "
                    "holds it open. Try again",
                    Command("down"),
                ) from error
            time.sleep(_LOOK_EVERY_S)


def _refuse_links(folder: RunFolder) -> None:
    if told := list(_links(folder)):
        raise DamagedError("\n".join(told))


def _links(folder: RunFolder) -> Iterator[str]:
    """Links where Boxcar makes none. What a training left below its {out} may be one."""
    root = folder.path
    if paths.has_symlink(folder.base, f"boxcar/{folder.run}"):
        yield f"{root}: a folder of it is a symbolic link; nothing is removed through it"
        return
    for parent in (root, root / "cells"):
        for path in parent.iterdir() if parent.is_dir() else ():
            if path.is_symlink():
                yield f"{path}: is a symbolic link, and Boxcar makes none there; see where it leads"


def _folder_problems(folder: RunFolder, results: Path) -> Iterator[str]:
    yield from _links(folder)
    for path in (folder.path, folder.aside):
        if results.resolve().is_relative_to(path.resolve()):
            yield f"{results}: lies inside {path}, which would be removed"


def _is_ours(path: Path) -> bool:
    """Whether it reads as Boxcar writes credentials."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and {"env", "webhooks"} <= set(record)


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
