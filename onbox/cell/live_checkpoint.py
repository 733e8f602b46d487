"""The live checkpoint of a cell, mirrored to the durable tier, so that a lost box costs minutes.

How often is Young and Daly's (shared/cadence.py), from the time a copy was measured to take. Only
whole checkpoints are mirrored: one that changed while it was copied is dropped. A folder that is a
sharded checkpoint (DCP) travels as one packed file; other folders are not mirrored.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from boxcar.shared import cadence, paths, timestamp
from boxcar.shared.disk import atomic, checked_copy, packed_folder, regular_file
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, manifest, resume_pointer
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.to_load import SHARD_SUFFIX, SHARDED_INDEX

SHORTEST_S, LONGEST_S = 60.0, 3600.0


def cadence_s(copy_s: float, mtbf_s: float) -> float:
    """Seconds from one mirrored checkpoint to the next."""
    return min(LONGEST_S, max(SHORTEST_S, cadence.window_s(copy_s, mtbf_s)))


@dataclass(frozen=True)
class _File:
    """One file of a checkpoint. What was replaced has another inode, what was changed a time."""

    name: str
    size_bytes: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True)
class _Stamp:
    """A checkpoint that was replaced has another stamp. `path` is where a link ends.

    A folder has more files than its index; a file is its only one.
    """

    path: Path
    files: tuple[_File, ...]
    is_folder: bool = False

    @property
    def mtime_ns(self) -> int:
        return max(file.mtime_ns for file in self.files)

    @property
    def is_whole(self) -> bool:
        """DCP writes the index last: a shard that is newer belongs to a save that goes on."""
        index = [file.mtime_ns for file in self.files if file.name == SHARDED_INDEX]
        shards = [file.mtime_ns for file in self.files if file.name.endswith(SHARD_SUFFIX)]
        return not self.is_folder or bool(index and shards and max(shards) <= index[0])


class Mirror:
    """Mirrors one cell's checkpoint while one attempt runs."""

    def __init__(
        self,
        cell: str,
        attempt: int,
        out: Path,
        resume: str,
        folder: Path,
        *,
        mtbf_s: float = cadence.PRIOR_S,
    ) -> None:
        """`resume` is the checkpoint's path below `out`; it may be a link to another there.

        `mtbf_s`: the mean time between interruptions of this box.
        """
        self._cell, self._attempt = cell, attempt
        self._out, self._resume, self._folder = out, resume, folder
        self._mtbf_s = mtbf_s
        self._next_at = time.monotonic() + SHORTEST_S
        self._seen: _Stamp | None = None

    def tick(self, on_chunk: Callable[[int], None]) -> None:
        """Mirror the checkpoint if it is due and new. Raises OSError and NoRoomError."""
        if time.monotonic() >= self._next_at:
            self.flush(on_chunk)

    def flush(self, on_chunk: Callable[[int], None]) -> None:
        """Mirror the checkpoint if it is new: the box may be going away."""
        stamp = self._stamp()
        if stamp is None or stamp == self._seen or not stamp.is_whole:
            self._next_at = time.monotonic() + SHORTEST_S
            return
        started = time.monotonic()
        try:
            if self._copy(stamp, on_chunk):
                self._seen = stamp
        finally:
            self._next_at = time.monotonic() + cadence_s(time.monotonic() - started, self._mtbf_s)

    def _copy(self, stamp: _Stamp, on_chunk: Callable[[int], None]) -> bool:
        # The cell's own folder may be new; the one of all cells is not.
        atomic.make_folder_on_tier(self._folder, self._folder.parents[1])
        atomic.remove_unfinished(self._folder)
        checked_copy.check_room(self._folder, [file.size_bytes for file in stamp.files])
        plain_name = PurePosixPath(self._resume).name
        name = f"{self._attempt}-{stamp.mtime_ns}-{plain_name}"
        if stamp.is_folder:
            names = [file.name for file in stamp.files]
            file = packed_folder.pack(stamp.path, names, self._folder / name, on_chunk)
        else:
            file = checked_copy.checked_copy(stamp.path, self._folder / name, name, on_chunk)
        if self._stamp() != stamp:
            (self._folder / name).unlink()
            return False
        now = timestamp.utc_now()
        pointer = Resume(self._cell, self._attempt, now, plain_name, file, stamp.is_folder)
        atomic.write_whole(self._folder / resume_pointer.FILE, codec.to_document(pointer))
        for other in self._folder.iterdir():
            if other.name not in (name, resume_pointer.FILE):
                other.unlink()
        return True

    def _stamp(self) -> _Stamp | None:
        """Of the checkpoint as it is now; None where there is none. Raises OSError."""
        try:
            path = regular_file.resolve_left(self._out, self._resume)
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISDIR(found.st_mode):
            return _Stamp(path, tuple(_files_below(path)), is_folder=True)
        if not stat.S_ISREG(found.st_mode):
            return None
        return _Stamp(path, (_file(path.name, found),))


def _files_below(folder: Path) -> Iterator[_File]:
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode):
            yield _file(path.relative_to(folder).as_posix(), found)


def _file(name: str, found: os.stat_result) -> _File:
    return _File(name, found.st_size, found.st_mtime_ns, found.st_ino)


def restore(folder: Path, out: Path, resume_path: str) -> bool:
    """Bring a mirrored checkpoint back where scratch has none; True where this was done.

    Raises DamagedError for a mirror that is not as it was written; it is kept.
    """
    target = paths.inside(out, resume_path)
    if target.exists() or (pointer := resume_pointer.read(folder)) is None:
        return False
    if difference := manifest.compare_one(folder, pointer.file):
        raise DamagedError(
            f"{folder}: the mirrored checkpoint {difference.path} {difference.problem}"
        )
    if pointer.is_folder:
        packed_folder.unpack(folder / pointer.file.path, target)
        return True
    copied = checked_copy.checked_copy(folder / pointer.file.path, target, resume_path)
    if copied.sha256 != pointer.file.sha256:
        target.unlink()
        raise DamagedError(f"{folder}: the mirrored checkpoint changed while it was read")
    return True
