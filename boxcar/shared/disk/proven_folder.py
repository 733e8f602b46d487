"""A folder of files that are proven to be those of a list, although others may write into it.

Each file is hashed once; after that its size, times and inode tell whether it is still the file
that was hashed. A file that is not is fetched again from where the list is from.

Not covered: a change that leaves all of these as they were, the time of the change included.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from boxcar.shared import paths
from boxcar.shared.disk import atomic, checked_copy, digest, regular_file
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

_BYTECODE = "__pycache__"


@dataclass(frozen=True)
class Seen:
    """What is not as in the list. `added` are the topmost paths, a folder's ends with `/`.

    These are names as the disk has them, which need not be UTF-8: `shown` is for people.
    """

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


class ProvenFolder:
    """`fetch(file, target)` writes a file of the list to a path.

    `unlike` says what it means that a fetched file is not that of the list, and what to do then.
    Bytecode is removed, which may have been made from another text, unless it `keeps_bytecode`.
    """

    def __init__(
        self,
        folder: Path,
        files: Iterable[FileRecord],
        fetch: Callable[[FileRecord, Path], None],
        unlike: str,
        *,
        keeps_bytecode: bool = False,
    ) -> None:
        self.folder = folder
        self._files = {file.path: file for file in files}
        self._folders = {
            str(step) for path in self._files for step in PurePosixPath(path).parents
        } - {"."}
        self._fetch, self._unlike = fetch, unlike
        self._keeps_bytecode = keeps_bytecode
        self._proven: dict[str, tuple[int, ...]] = {}

    def restore(self) -> Seen:
        """Make every file that of the list; what was not, and what lies beside the files.

        Raises OSError, NoRoomError, and DamagedError where what is fetched is not that file.
        """
        seen = self._compare(is_for_use=True)
        if seen.changed:
            self._clear_the_way()
            sizes_bytes = (self._files[path].size_bytes for path in seen.changed)
            checked_copy.check_room(self.folder, sizes_bytes)
        for path in seen.changed:
            self._put_back(self._files[path])
        return seen

    def look(self) -> Seen:
        """Compare. Touches nothing but bytecode. Nothing is said of a folder that is not there and
        never was proven.
        """
        return self._compare() if self._proven or self.folder.is_dir() else Seen()

    def _compare(self, *, is_for_use: bool = False) -> Seen:
        stamps: dict[str, tuple[int, ...]] = {}
        added: list[str] = []
        for path, found in self._walk():
            is_folder = stat.S_ISDIR(found.st_mode)
            name = path.rpartition("/")[2]
            if path in self._files:
                stamps[path] = _stamp(found)
            elif name == _BYTECODE and is_folder:
                if not self._keeps_bytecode:
                    shutil.rmtree(self.folder / path, ignore_errors=True)
            elif not atomic.is_temporary(name):
                added.append(f"{path}/" if is_folder else path)
            elif is_for_use:  # a copy that was killed, or what a script named like one
                regular_file.remove(self.folder / path)
        changed = [path for path in self._files if not self._is_proven(path, stamps.get(path))]
        return Seen(tuple(sorted(changed)), tuple(sorted(added)))

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """Every file of the list that is there, and the topmost of what is beside them."""
        heads = [""]
        if self.folder.is_symlink() or not self.folder.is_dir():
            return
        while heads:
            head = heads.pop()
            with os.scandir(f"{self.folder}/{head}") as entries:
                for entry in entries:
                    path = f"{head}{entry.name}"
                    if path in self._folders and entry.is_dir(follow_symlinks=False):
                        heads.append(f"{path}/")
                    elif found := _stat(entry.path):
                        yield path, found

    def _is_proven(self, path: str, stamp: tuple[int, ...] | None) -> bool:
        if stamp is None:
            return False
        if self._proven.get(path) == stamp:
            return True
        file = self._files[path]
        # The stamp is from before the bytes are read: who writes meanwhile makes another one.
        if not stat.S_ISREG(stamp[0]) or stamp[1] != file.size_bytes:
            return False
        if digest.of_file(self.folder / path) != file.sha256:
            return False
        self._proven[path] = stamp
        return True

    def _put_back(self, file: FileRecord) -> None:
        target = paths.inside(self.folder, file.path)
        temporary = atomic.temporary_name(target)
        try:
            self._fetch(file, temporary)
            if digest.of_file(temporary) != file.sha256:
                raise DamagedError(_("{head}: {text}", head=file.path, text=self._unlike))
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        self._proven[file.path] = _stamp(target.lstat())

    def _clear_the_way(self) -> None:
        """A folder of the release that was made a link or a file would lead copies elsewhere."""
        for step in (self.folder, *(self.folder / name for name in sorted(self._folders))):
            if step.is_symlink() or (step.exists() and not step.is_dir()):
                step.unlink()
            step.mkdir(parents=True, exist_ok=True)


def _stat(path: str) -> os.stat_result | None:
    """Of a link itself; None for what is gone by now."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    """The mode first, so that a link or a pipe is never taken for the file."""
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def shown(name: str) -> str:
    """For people: a name need not be UTF-8."""
    return os.fsencode(name).decode(errors="replace")
