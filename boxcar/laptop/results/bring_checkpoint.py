"""The live checkpoints of running cells, from boxes that keep them alone to this machine.

Where no durable tier outlives a box, what its agent mirrors dies with it. So `watch` fetches the
newest whole one of each cell, and `launch` lends it to the box that runs the cell next
(lend.py). The box goes on mirroring meanwhile: a checkpoint that was replaced before its
copy began is left for the next look. Results and other verbs go first, so the link is never filled.

Not covered: a box without rsync, whose copy starts over when it is cut.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from boxcar.laptop.hosts import folders
from boxcar.laptop.results.bring_cell import refuse_too_much
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import CellView, RunView
from boxcar.shared import paths
from boxcar.shared.disk import atomic, checked_copy, lock
from boxcar.shared.errors import BoxcarError, DamagedError, TemporaryError, words_of
from boxcar.shared.files import codec, manifest, resume_pointer
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

MOST_KIB_S = 8 * 1024


@dataclass(frozen=True)
class Due:
    """A checkpoint that is newer than the one here."""

    cell: str
    box: str
    pointer: Resume


def due(run: OpenRun, view: RunView) -> list[Due]:
    """What is to be brought, from what the boxes have reported."""
    return [found for cell in view.cells if (found := _due(run, cell))]


def _due(run: OpenRun, cell: CellView) -> Due | None:
    if cell.word == "verified" or not run.is_planned(cell.box):
        return None
    try:
        there = resume_pointer.read_resume_pointer(run.tier.resume(cell.name))
    except (DamagedError, OSError):
        return None  # the agent writes it anew, or says what is wrong with it
    if there is None or there == here(run, cell.name):
        return None
    return Due(cell.name, cell.box, there)


def here(run: OpenRun, cell: str) -> Resume | None:
    """What was brought of the cell, as far as that can be read. Its bytes are proven on the box."""
    try:
        return resume_pointer.read_file(run.results.resume_pointer(cell))
    except (DamagedError, OSError):
        return None


def bring(run: OpenRun, wanted: Due, on_wait: Callable[[], None] = lambda: None) -> None:
    """Put the checkpoint here in the place of the one before. `on_wait` may raise to end it.

    Raises BoxcarError, OSError; what was here before stays until the new one is whole.
    """
    file, partial = wanted.pointer.file, partial_of(run, wanted)
    source = run.folder_on(wanted.box, str(run.project.on_tier.resume(wanted.cell)))

    def look_on() -> None:
        on_wait()
        refuse_too_much(source, [partial], file.size_bytes)

    folders.fetch_folder(source, partial, files=[file.path], on_wait=look_on, most_kib_s=MOST_KIB_S)
    keep(run, wanted, partial)


def partial_of(run: OpenRun, wanted: Due) -> Path:
    """Where the checkpoint lies while it comes. Raises NoRoomError, OSError."""
    partial = run.results.root / "resume" / f".partial-{wanted.cell}"
    atomic.make_folder(partial)
    checked_copy.check_room(partial, [wanted.pointer.file.size_bytes])
    return partial


def keep(run: OpenRun, wanted: Due, partial: Path) -> None:
    """What came, once it is right, into its place. Raises TemporaryError where it is not."""
    file = wanted.pointer.file
    if difference := manifest.compare_one(partial, file):
        shutil.rmtree(partial)
        raise TemporaryError(
            _(
                "{cell}: its checkpoint {difference} {problem}; the next update tries the newest "
                "one",
                cell=wanted.cell,
                difference=difference.path,
                problem=difference.problem,
            )
        )
    target = run.results.resume(wanted.cell)
    _place(run, wanted, paths.inside(partial, file.path), target)
    shutil.rmtree(partial)


def _place(run: OpenRun, wanted: Due, came: Path, target: Path) -> None:
    """The file first, then what points to it; older files go last."""
    atomic.sync_file(came)
    atomic.make_folder(target)
    came.replace(target / came.name)
    atomic.sync_folder(target)
    atomic.write_whole(run.results.resume_pointer(wanted.cell), codec.to_document(wanted.pointer))
    for other in target.iterdir():
        if other.name != came.name:
            other.unlink()


def drop_pulled(run: OpenRun, view: RunView) -> None:
    """Remove the checkpoints of cells whose results lie here: nothing continues from them."""
    for cell in view.cells:
        if cell.word == "verified" and run.results.manifest(cell.name).exists():
            run.results.resume_pointer(cell.name).unlink(missing_ok=True)
            shutil.rmtree(run.results.resume(cell.name), ignore_errors=True)


class Bringing:
    """Brings what is due in a thread of its own, so that nobody who looks on has to wait for it."""

    def __init__(self, run: OpenRun, tell: Callable[[str], None]) -> None:
        """`tell` hears once of a cell whose checkpoint could not be brought twice in a row."""
        self._run, self._tell = run, tell
        self._thread: threading.Thread | None = None
        self._is_over = threading.Event()
        self._problems: dict[str, list[str]] = {}  # by cell, since one was brought
        self._told: set[str] = set()

    def see(self, view: RunView) -> None:
        """Begin with what is due, unless the last of these calls is being served still."""
        if self._thread and self._thread.is_alive():
            return
        for cell, problems in self._problems.items():
            if len(problems) > 1 and cell not in self._told:
                self._told.add(cell)
                self._tell(
                    _(
                        "the checkpoint of {cell} was not copied here: {problems}",
                        cell=cell,
                        problems=problems[-1],
                    )
                )
        drop_pulled(self._run, view)
        if wanted := due(self._run, view):
            self._thread = threading.Thread(target=self._bring_all, args=(wanted,))
            self._thread.start()

    def wait(self) -> None:
        """Until all that `see` has begun with lies here, or could not be brought."""
        if self._thread:
            self._thread.join()

    def close(self) -> None:
        """End what is under way; the next `watch` continues it."""
        self._is_over.set()
        self.wait()

    def _bring_all(self, wanted: list[Due]) -> None:
        folder = self._run.results.root / "resume"
        atomic.make_folder(folder)
        held = lock.try_hold(folder / ".lock")
        if held is None:
            return  # another `watch` is at it
        try:
            for one in wanted:
                self._try(one)
        finally:
            os.close(held)

    def _try(self, wanted: Due) -> None:
        try:
            bring(self._run, wanted, self._end_if_over)
        except (BoxcarError, OSError) as error:
            # Once is nothing: the box may have mirrored a newer one before the copy began.
            self._problems.setdefault(wanted.cell, []).append(words_of(error))
        else:
            self._problems.pop(wanted.cell, None)

    def _end_if_over(self) -> None:
        if self._is_over.is_set():
            raise TemporaryError(_("no longer watching"))
