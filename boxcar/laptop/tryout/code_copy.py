"""The copy of the code that tries run in: as it would be shipped, and put back after each try."""

from __future__ import annotations

import shutil
from pathlib import Path

from boxcar.laptop.project.project import Project
from boxcar.laptop.release import code_files
from boxcar.laptop.release.code_files import CodeFile
from boxcar.laptop.release.left_out_files import not_shipped
from boxcar.shared.disk import digest, regular_file
from boxcar.shared.disk.proven_folder import ProvenFolder, Seen, shown
from boxcar.shared.errors import InputError
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.process import strays
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

_EDITED = _("it was edited while smoke copied it. Run smoke again")


@dataclass(frozen=True)
class Written:
    """What a try wrote outside of {out}, by names for people.

    `strays` are declared files among it: declared path -> where it lay. `changed` are the code's
    own files.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    strays: tuple[tuple[str, str], ...] = ()


class CodeCopy:
    """`files` are those of the copy, by the names that they travel under."""

    def __init__(self, folder: Path, proven: ProvenFolder, files: tuple[CodeFile, ...]) -> None:
        self.folder, self.files = folder, files
        self._proven = proven

    def has(self, path: str) -> bool:
        """Whether a file or folder below the code folder travels."""
        return any(f.path == path or f.path.startswith(f"{path}/") for f in self.files)

    def put_back(self, wanted: tuple[str, ...]) -> Written:
        """Name what was written here, looking for the wanted files, and make the copy new again.

        Raises DamagedError where the project's own file was edited meanwhile, and OSError.
        """
        seen = self._proven.look()
        if seen == Seen():
            return Written()
        found = strays.find(self.folder, seen.added, wanted)
        self._proven.restore()
        for name in seen.added:
            regular_file.remove(self.folder / name)
        names = tuple(shown(name) for name in seen.added)
        return Written(names, seen.changed, tuple(sorted(found.items())))


def copy_code(project: Project, folder: Path) -> CodeCopy:
    """Copy the code anew: the last tries may have written into it.

    Raises InputError, DamagedError, OSError.
    """
    taken = code_files.snapshot_of(project)
    if left_out := not_shipped(project.plan, taken):
        raise InputError(left_out)
    regular_file.remove(folder)
    sources = {file.path: file for file in taken.files}
    records = [_record(file) for file in taken.files]
    proven = ProvenFolder(folder, records, lambda file, to: _copy(sources[file.path], to), _EDITED)
    proven.restore()
    return CodeCopy(folder, proven, tuple(CodeFile(path, folder / path) for path in sources))


def _record(file: CodeFile) -> FileRecord:
    return FileRecord(file.path, file.source.stat().st_size, digest.of_file(file.source))


def _copy(file: CodeFile, target: Path) -> None:
    shutil.copyfile(file.source, target)
    target.chmod(0o755 if file.is_executable else 0o644)
