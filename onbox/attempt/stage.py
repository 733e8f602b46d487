"""What a cell runs from: the release's code and wrapper on the box's own fast disk.

So a run never reads the shared tier for them, and what is edited there changes no cell. Both are
proven to be the release's before each attempt, and compared after it. They stay writable: scripts
write beside themselves. What one has written there is moved away before another attempt begins.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import digest, regular_file
from boxcar.shared.disk.proven_folder import ProvenFolder, Seen
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest, release
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.release import Release
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.process import strays
from boxcar.shared.sentence import _
from onbox.result import beside, collect

_UNLIKE = (
    "the release on the durable tier is not as it was pushed. Move its folder away and push again"
)


class Stage:
    """The two folders of one release on one box."""

    def __init__(self, code: ProvenFolder, wrapper: ProvenFolder) -> None:
        self._code, self._wrapper = code, wrapper
        self._last = Seen()

    def restore(self) -> Seen:
        """Prove or restore every file; what somebody had changed, and what lies beside the code.

        Before an attempt. Raises OSError, NoRoomError, DamagedError.
        """
        changed: list[str] = []
        for staged in (self._wrapper, self._code):
            was_there = staged.folder.is_dir()
            seen = staged.restore()
            if staged is self._wrapper:
                changed += without_program(seen.changed) if was_there else ()
                for name in seen.added:  # what lies beside a program could be imported by it
                    regular_file.remove(staged.folder / name)
            elif was_there:
                changed += seen.changed
        self._last = Seen(tuple(changed), seen.added)
        return self._last

    def look(self) -> Seen:
        """What was changed of the release, and lies beside its code. Nothing is restored."""
        code, wrapper = self._code.look(), self._wrapper.look()
        self._last = Seen((*code.changed, *without_program(wrapper.changed)), code.added)
        return self._last

    def find_added(self, wanted: Sequence[str]) -> dict[str, str]:
        """Which of these files, or patterns, was found beside the code, and where below it."""
        return strays.find(self._code.folder, self._last.added, wanted)

    def move_collected(self, wanted: Sequence[str], out: Path) -> Seen:
        """Move what the job collects of it into `out`; what is left. Raises OSError."""
        if wanted and collect.move(self._code.folder, self._last.added, wanted, out):
            return self.look()
        return self._last

    def move_added(self, to: Path) -> None:
        """Move what was found beside the code there. May be done again. Raises OSError."""
        beside.move(self._code.folder, self._last.added, to)
        self._last = Seen(self._last.changed)


def of_release(folder: Path, found: Release, scratch: ScratchPaths, slot: int = 0) -> Stage:
    """The stage of the release that lies in `folder`, of one slot. Nothing is copied yet. The
    wrapper is that of all slots.
    """
    fetch = _fetch_from(folder / release.CODE)
    code = ProvenFolder(scratch.code(found.digest, slot), code_files(found), fetch, _UNLIKE)
    return Stage(code, _wrapper(folder, found, scratch))


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
    found = release.read_release(folder)
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
    names = (release.RUN_ONE, release.PLAN, found.training)
    return (file for file in found.files if file.path in names)


def _fetch_from(folder: Path) -> Callable[[FileRecord, Path], None]:
    def fetch(file: FileRecord, target: Path) -> None:
        shutil.copy(paths.inside(folder, file.path), target)

    return fetch


def _refuse(folder: Path, differences: list[manifest.Difference]) -> None:
    if differences:
        told = "; ".join(f"{found.path} {found.problem}" for found in differences[:5])
        raise DamagedError(
            _(
                "{folder}: {n} {n:file|files} not as pushed: {told}. Remove the folder and push "
                "again.",
                folder=folder,
                n=len(differences),
                told=told,
            )
        )


# --- The program of an attempt: what is ours of the agent's file, unpacked on the box's own disk.
# From the file itself each attempt would inflate and compile it anew. The sources are proven;
# their bytecode is Python's own cache, which the first attempt makes: what is compiled of one text
# differs from process to process.

FOLDER = "program"
_OURS = ("boxcar/", "onbox/")


class Program:
    """Its files, from the agent's file of a release."""

    def __init__(self, archive: Path) -> None:
        """Raises OSError, BadZipFile."""
        with zipfile.ZipFile(archive) as opened:
            names = [name for name in opened.namelist() if name.startswith(_OURS)]
            self._data = {name: opened.read(name) for name in names if not name.endswith("/")}

    def records(self) -> tuple[FileRecord, ...]:
        return tuple(
            FileRecord(f"{FOLDER}/{name}", len(data), digest.of_bytes(data))
            for name, data in self._data.items()
        )

    def fetch(self, file: FileRecord, target: Path) -> None:
        target.write_bytes(self._data[file.path.removeprefix(f"{FOLDER}/")])
        # Of no other time than this is the bytecode: what was made of another text is made anew.
        os.utime(target, (0, 0))


def without_program(changed: Iterable[str]) -> tuple[str, ...]:
    """Of files of a wrapper those that are not of its program, which is Boxcar's own: it is put
    back, and no cell is failed for it.
    """
    return tuple(path for path in changed if not path.startswith(f"{FOLDER}/"))
