"""What a cell runs from: the release's code and wrapper on the box's own fast disk.

So a run never reads the shared tier for them, and what is edited there changes no cell. Both are
proven to be the release's before each attempt (of an agent that has waited, as far as the kernel
tells), and compared after it. They stay writable: scripts
write beside themselves. What one has written there is moved away before another attempt begins.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from boxcar.shared import paths, strays
from boxcar.shared.disk import removal
from boxcar.shared.disk.proven_folder import ProvenFolder, Seen
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest, release
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.release import Release
from boxcar.shared.message import counted
from boxcar.shared.paths import ScratchPaths
from onbox.cell import beside
from onbox.cell.collect import collected_strays
from onbox.cell.wrapper import program
from onbox.cell.wrapper.program import Program
from onbox.machine.folder_watch import FolderWatch

# What is written later than that, the look after the attempt sees.
_FRESH_S = 1.0
# From so many files of code on, each of which a look asks for (4 us), that after an attempt asks
# the kernel what may have changed, and for all of them beside the next cell.
WATCHED_FROM = 1000
_UNLIKE = (
    "the release on the durable tier is not as it was pushed. Move its folder away and push again"
)


# Of the code, and of the wrapper.
Watches = tuple[FolderWatch, FolderWatch]


def new_watches() -> Watches:
    return FolderWatch(), FolderWatch()


class Stage:
    """The two folders of one release on one box."""

    def __init__(self, code: ProvenFolder, wrapper: ProvenFolder, watches: Watches) -> None:
        self._code, self._wrapper, self._watches = code, wrapper, watches
        self._is_much = len(code) >= WATCHED_FROM
        self._is_wholly_seen = not self._is_much
        # Until a look that comes after it.
        self._may_have_run = False
        self._late: dict[str, float] = {}
        self._last = Seen()
        self._last_at: float | None = None
        self._is_restored = False

    def restore(self) -> Seen:
        """Prove or restore every file; what somebody had changed, and what lies beside the code.

        Before an attempt. Raises OSError, NoRoomError, DamagedError.
        """
        self._may_have_run = True
        if self.is_fresh:
            return self._last
        changed: list[str] = []
        for staged in (self._wrapper, self._code):
            was_there = staged.folder.is_dir()
            seen = staged.restore()
            if staged is self._wrapper:
                changed += program.without(seen.changed) if was_there else ()
                for name in seen.added:  # what lies beside a program could be imported by it
                    removal.remove(staged.folder / name)
            elif was_there:
                changed += seen.changed
        self._last_at, self._is_restored = None, True
        self._last = Seen(tuple(changed), seen.added)
        return self._last

    def look(self) -> Seen:
        """What was changed of the release, and lies beside its code. Nothing is restored.

        Of much code only what the kernel tells of; what it does not, `changed_by` finds.
        """
        code, _ = self._watches
        seen = self._look(_told(code, self._code) if self._is_much else None, None)
        self._may_have_run = False
        return seen

    def look_while_idle(self) -> None:
        """Nobody waits, and no cell runs: from here on the kernel tells what changes."""
        if not self._is_restored:
            return
        if self._may_have_run:
            self.look()
        code, wrapper = self._watches
        self._look(_told(code, self._code), _told(wrapper, self._wrapper))

    def _look(self, code_told: set[str] | None, wrapper_told: set[str] | None) -> Seen:
        self._is_wholly_seen, self._late = not self._is_much or code_told is None, {}
        code, wrapper = self._code.look(code_told), self._wrapper.look(wrapper_told)
        changed = program.without(wrapper.changed)
        is_whole = changed == wrapper.changed and not wrapper.added
        self._is_restored = self._is_restored and is_whole
        self._last = Seen((*code.changed, *changed), code.added)
        self._last_at = time.monotonic()
        return self._last

    def changed_by(self, at: float) -> tuple[str, ...]:
        """Files of the code that had been changed by then, in seconds since the epoch, and that the
        last look was not told of. Touches nothing: a cell may be running.
        """
        if not self._is_wholly_seen:
            self._is_wholly_seen, self._late = True, self._code.changed_at()
        if self._late:
            self._last_at = None
        return tuple(sorted(path for path, changed_at in self._late.items() if changed_at <= at))

    def find_added(self, wanted: Sequence[str]) -> dict[str, str]:
        """Which of these files, or patterns, was found beside the code, and where below it."""
        return strays.find(self._code.folder, self._last.added, wanted)

    def move_collected(self, wanted: Sequence[str], out: Path) -> Seen:
        """Move what the job collects of it into `out`; what is left. Raises OSError."""
        if wanted and collected_strays.move(self._code.folder, self._last.added, wanted, out):
            return self.look()
        return self._last

    def move_added(self, to: Path) -> None:
        """Move what was found beside the code there. May be done again. Raises OSError."""
        beside.move(self._code.folder, self._last.added, to)
        self._last = Seen(self._last.changed)

    def is_still_proven(self) -> bool:
        """Whether all is as it was proven to be. Where the last look is older, it is looked at
        again; where no cell has run since then, at what the kernel has told of.
        """
        if self._is_restored and not self.is_fresh:
            if self._may_have_run:
                self.look()
            else:
                code, wrapper = self._watches
                self._look(code.told(self._code.folder), wrapper.told(self._wrapper.folder))
        return self.is_fresh

    @property
    def is_fresh(self) -> bool:
        """Whether nothing can have run since a look that found all as it should be."""
        if not self._is_restored or self._last_at is None or self._last != Seen():
            return False
        return time.monotonic() - self._last_at < _FRESH_S


def _told(watch: FolderWatch, staged: ProvenFolder) -> set[str] | None:
    """It is watched from now on: that takes some 10 ms. None: all of it is to be looked at."""
    told = watch.told(staged.folder)
    if told is None:
        watch.begin(staged.folder, staged.folders)
    return told


def of_release(
    folder: Path, found: Release, scratch: ScratchPaths, watches: Watches | None = None
) -> Stage:
    """The stage of the release that lies in `folder`. Nothing is copied yet.

    `watches` are those that stages share, of which one is used at a time.
    """
    fetch = _fetch_from(folder / release.CODE)
    code = ProvenFolder(scratch.code(found.digest), code_files(found), fetch, _UNLIKE)
    return Stage(code, _wrapper(folder, found, scratch), watches or new_watches())


def _wrapper(folder: Path, found: Release, scratch: ScratchPaths) -> ProvenFolder:
    """run_one.sh, what it looks for beside itself, and the program that it becomes."""
    made = Program(folder / found.onbox)
    staged, of_release = made.records(), _fetch_from(folder)
    of_program = {file.path for file in staged}

    def fetch(file: FileRecord, target: Path) -> None:
        (made.fetch if file.path in of_program else of_release)(file, target)

    files = (*_wrapper_files(found), *staged)
    staged_in = scratch.wrapper(found.digest)
    return ProvenFolder(staged_in, files, fetch, _UNLIKE, keeps_bytecode=True)


def check_release(folder: Path) -> Release:
    """The release, once every file of it is as it was pushed. Raises DamagedError."""
    found = release.read(folder)
    _refuse(folder, manifest.compare(folder, found.files))
    return found


def code_files(found: Release) -> tuple[FileRecord, ...]:
    """The files of the user's code, with paths relative to the code folder."""
    head = f"{release.CODE}/"
    return tuple(
        FileRecord(file.path.removeprefix(head), file.size_bytes, file.sha256)
        for file in found.files
        if file.path.startswith(head)
    )


def _wrapper_files(found: Release) -> Iterable[FileRecord]:
    """All that run_one.sh looks for beside itself."""
    names = (release.RUN_ONE, release.PLAN, found.onbox, found.training)
    return (file for file in found.files if file.path in names)


def _fetch_from(folder: Path) -> Callable[[FileRecord, Path], None]:
    def fetch(file: FileRecord, target: Path) -> None:
        shutil.copy(paths.inside(folder, file.path), target)

    return fetch


def _refuse(folder: Path, differences: list[manifest.Difference]) -> None:
    if differences:
        told = "; ".join(f"{found.path} {found.problem}" for found in differences[:5])
        raise DamagedError(
            f"{folder}: {counted(len(differences), 'file')} not as pushed: {told}. "
            "Remove the folder and push again."
        )
