"""A run on this machine: each box is a folder here, with what a rented box would have.

The tier, locks and logs are read where they lie. What changes something goes through `onbox answer`
in a child with a clean environment, as it would on a rented box.

The run ends by the removal of its folders: credentials first, then the boxes' scratch, the durable
tier last. Only ever `boxcar/<run>` below a box's data folder or the tier is removed, and the
credentials files that the plan names. A folder is renamed before it is removed, so that what a
killed removal leaves is never taken for a run. Not covered: whether it may be done. That is the
gate's.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.common import units
from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import ask_over_ssh, folders
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import launches
from boxcar.laptop.run.log_source import FileLog, LogSource
from boxcar.laptop.run.open_run import ASK_TIMEOUT_S
from boxcar.laptop.run.view import CellView
from boxcar.laptop.teardown.gate import Steps
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic, lock
from boxcar.shared.environment import clean_environment
from boxcar.shared.errors import BoxcarError, Command, DamagedError, InputError, TemporaryError
from boxcar.shared.files import progress
from boxcar.shared.files.plan import Cell
from boxcar.shared.paths import DurablePaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _
from boxcar.shared.wire.question import A, Question

GONE_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.5
# A file that a process of another host still has open lingers on NFS for a while.
_LINGERING = (errno.ENOTEMPTY, errno.EBUSY)


class LocalSite(Site):
    """See Site."""

    tick_s = 0.25
    poll_s = 2.0
    needs_audit = False
    end_fix: ClassVar[Command | str] = _("Fix that, or move it away")

    @property
    def tier(self) -> DurablePaths:
        return self.project.on_tier

    def box_label(self, box: str) -> str:
        # Who forgot --profile would read the alias of a rented box.
        return _("{box} (a folder on this machine)", box=box)

    def give_up_boxes(self, names: Iterable[str]) -> None:
        for name in names:
            if self._is_still(name):
                self._gone.add(name)
                continue
            if name != self.plan.durable_dir:
                raise InputError(
                    _("--gone {name}: it is a folder on this machine and can be read", name=name)
                )
            if self.tier.root.exists():
                raise InputError(_("--gone {name}: the run is there, so it is not gone", name=name))
            self._gone.add(name)

    def _is_still(self, box: str) -> bool:
        """Whether it is in a pool, and no agent is at work there."""
        queues = self.tier.known_queues(self.plan.queues)
        its = [queue for queue in queues if queue.endswith(f"@{box}")]
        return bool(its) and not any(map(self.is_agent_alive, its))

    def tier_doubts(self) -> list[str]:
        if not self.is_tier_out_of_sight():
            return []
        return [
            _(
                "the run was launched on this machine, but {root} is missing: is it mounted?",
                root=self.tier.root,
            )
        ]

    def is_tier_out_of_sight(self) -> bool:
        """Whether the run was launched here, nobody has begun to end it, and its folder is gone."""
        if self.tier.root.exists() or self.results.teardown.exists() or self._gone:
            return False
        return self.project.profile.name in launches.profiles_of(self.results)

    def is_agent_alive(self, queue: str) -> bool | None:
        return None if self.is_tier_out_of_sight() else lock.is_held(self.tier.lock(queue))

    def is_attempt_alive(self, box: str, cell: str) -> bool | None:
        return lock.is_held(self.project.scratch(box).log(cell))

    def progress_at(self, box: str, cell: str) -> str | None:
        path = self.project.scratch(box).out(cell) / progress.FILE
        with contextlib.suppress(OSError):
            return timestamp.utc(datetime.fromtimestamp(path.stat().st_mtime, timezone.utc))
        return None

    def ask(self, box: str, question: Question[A], *, timeout_s: float = ASK_TIMEOUT_S) -> A:
        return ask_over_ssh.ask_here(
            self.plan.agent_python,
            Home(self.project.root),
            box,
            question,
            self._run_on(box),
            environ=clean_environment(os.environ),
            timeout_s=timeout_s,
        )

    def reach_tiers(self, boxes: Sequence[str]) -> list[str]:
        return list(boxes[:1])

    def folder_on(self, box: str, path: str) -> Path:
        return Path(path)

    def published_folder(self, cell: str) -> Path:
        return self.tier.cell(cell)

    def python(self) -> str:
        """The box's own, because the box is this machine."""
        return self.plan.training_python

    # --- logs and files

    def log_of(self, cell: CellView) -> LogSource | None:
        """The box has the log while the cell runs; the durable tier and the results after it."""
        places = [self.tier.cell(cell.name) / f"{cell.name}.log", self.pulled_log(cell.name)]
        if self.is_planned(cell.box):
            places.insert(0, self.project.scratch(cell.box).log(cell.name))
        return next((FileLog(path) for path in places if path.is_file()), None)

    def _cell_folders(self, cell: Cell) -> Iterator[Path]:
        """The box has them while the cell runs."""
        own = self.plan.boxes_of_files[cell.queue]
        for box in dict.fromkeys([*own, *(b.name for b in self.plan.boxes)]):
            yield self.project.scratch(box).out(cell.name)
        yield self.tier.cell(cell.name)
        yield self.results.cell(cell.name)

    def folders_here(self, boxes: Collection[str]) -> dict[str, Path]:
        known = [box for box in self.plan.boxes if box.name in boxes]
        scratch: dict[str, Path] = {
            _("scratch of {box}", box=box.name): Path(box.data_dir) for box in known
        }
        return {_("durable tier"): self.tier.root} | scratch

    # --- its end

    def end_problems(self) -> list[str]:
        """Links, or results that lie in what is removed."""
        results = self.results.root
        told = [text for folder in self.run_folders() for text in _folder_problems(folder, results)]
        for path in self.credentials_files():
            if (path.exists() or path.is_symlink()) and not _is_ours(path):
                told.append(
                    _(
                        "{path}: is not a credentials file that Boxcar wrote; it was left alone",
                        path=path,
                    )
                )
        return told

    def end_price(self) -> list[str]:
        return [
            *(_("credentials: {file}", file=path) for path in self.credentials_files()),
            *(_price_of(folder) for folder in self.run_folders()),
        ]

    def end_boxes(self, steps: Steps) -> None:
        """Remove everything and wait until it is gone.

        Harmless to repeat, so `steps` is not needed. Raises TemporaryError where
        something lingers, BoxcarError where it cannot be removed.
        """
        for path in self.credentials_files():
            path.unlink(missing_ok=True)
        for folder in self.run_folders():
            _clear(folder.aside)
            if folder.path.exists():
                _refuse_links(folder)
                folder.path.rename(folder.aside)
                atomic.sync_folder(folder.aside.parent)
                _clear(folder.aside)

    def credentials_files(self) -> list[Path]:
        return [Path(box.credentials) for box in self.plan.boxes]

    def run_folders(self) -> list[RunFolder]:
        """What is removed of the run, in this order."""
        plan = self.plan
        scratches = [
            RunFolder(_("scratch of {box}", box=box.name), Path(box.data_dir), plan.run)
            for box in plan.boxes
        ]
        tier = RunFolder(_("durable tier"), Path(plan.durable_dir), plan.run)
        return [*scratches, tier]


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


def _price_of(folder: RunFolder) -> Sentence:
    size = units.size(folders.bytes_below(folder.path))
    return _("{what}: {folder} ({size})", what=folder.what, folder=folder.path, size=size)


def _clear(path: Path) -> None:
    """Remove a folder that has its name of removal already, and poll until it is gone."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while path.exists() or path.is_symlink():
        try:
            shutil.rmtree(path)
        except OSError as error:
            if error.errno not in _LINGERING:
                told = _(
                    "{path}: cannot be removed: {error}. Fix that, then run again",
                    path=path,
                    error=error,
                )
                raise BoxcarError(told, Command("down")) from error
            if time.monotonic() > deadline:
                raise TemporaryError(
                    _(
                        "{path}: still there after {gone_within_s:.0f} s ({error}); something "
                        "keeps it open. Try again",
                        path=path,
                        gone_within_s=GONE_WITHIN_S,
                        error=error,
                    ),
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
        yield _(
            "{root}: a folder on this path is a symbolic link; Boxcar removes nothing through it",
            root=root,
        )
        return
    for parent in (root, root / "cells"):
        for path in parent.iterdir() if parent.is_dir() else ():
            if path.is_symlink():
                yield _(
                    "{path}: is a symbolic link that Boxcar did not make; check where it leads",
                    path=path,
                )


def _folder_problems(folder: RunFolder, results: Path) -> Iterator[str]:
    yield from _links(folder)
    for path in (folder.path, folder.aside):
        if results.resolve().is_relative_to(path.resolve()):
            yield _(
                "{results}: is inside {path}, which would be removed", results=results, path=path
            )


def _is_ours(path: Path) -> bool:
    """Whether it reads as Boxcar writes credentials."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and {"env", "webhooks"} <= set(record)
