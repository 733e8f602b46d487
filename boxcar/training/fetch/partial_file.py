"""NAME.part: what has come of a file, written piece by piece from any thread, and its record.

A piece counts as done only once it was fsynced before the record that says so, so that after a
power cut no hole is taken for data.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from boxcar.shared.disk import atomic
from boxcar.shared.disk.mounts import is_full
from boxcar.shared.errors import NoRoomError
from boxcar.shared.files import codec
from boxcar.training.fetch import records

PIECE_BYTES = 16 * 1024 * 1024
# What a kill may cost: the pieces that came since the record was written.
SAVE_EVERY_S = 2.0


class PartialFile:
    """`source` is the identity of what it is a part of; another one's part is thrown away."""

    def __init__(self, target: Path, source: str, size_bytes: int) -> None:
        self.path, self._target = records.part_of(target), target
        self._source, self._size_bytes = source, size_bytes
        self._count = -(-size_bytes // PIECE_BYTES)
        self._done: set[int] = set()
        self._is_open = False
        self._lock, self._saved_s = threading.Lock(), time.monotonic()

    def open(self, *, may_resume: bool) -> None:
        """Go on with the part that lies there where it is of the same source, else begin anew."""
        atomic.make_folder(self.path.parent)
        self._done = self._usable() if may_resume else set()
        if not self._done:
            records.drop_part(self._target)
            with self.path.open("xb") as file:
                file.truncate(self._size_bytes)
            atomic.sync_folder(self.path.parent)
        self._is_open = True

    @property
    def missing(self) -> list[int]:
        """The pieces that are still to come."""
        return sorted(set(range(self._count)) - self._done)

    @property
    def done_bytes(self) -> int:
        return sum(end - start for start, end in map(self.bounds, self._done))

    @property
    def missing_bytes(self) -> int:
        """What the disk must still give. A part has holes: its blocks count, not its size."""
        kept_bytes = self.path.stat().st_blocks * 512 if self.path.exists() else 0
        return max(0, self._size_bytes - kept_bytes)

    def bounds(self, index: int) -> tuple[int, int]:
        """First byte of a piece, and the one after its last."""
        return index * PIECE_BYTES, min((index + 1) * PIECE_BYTES, self._size_bytes)

    def mark(self, index: int) -> bool:
        """This piece was written; True where it was the last that was missing."""
        with self._lock:
            self._done.add(index)
            if time.monotonic() - self._saved_s >= SAVE_EVERY_S:
                self._save()
            return len(self._done) == self._count

    def save(self) -> None:
        """Make what has come durable, so that the next one goes on from here."""
        with self._lock:
            if self._is_open and self.path.exists():
                self._save()

    def write(self, data: bytes, start: int) -> None:
        """Raises NoRoomError, OSError."""
        fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(fd, view, start)
                start, view = start + written, view[written:]
        except OSError as error:
            if is_full(error):
                raise NoRoomError(
                    f"{self.path}: {error.strerror}; {self._size_bytes} bytes belong there, "
                    f"{self.done_bytes} have arrived and are kept"
                ) from error
            raise
        finally:
            os.close(fd)

    def _usable(self) -> set[int]:
        """The pieces of a former attempt that belong to this very source."""
        record = records.read_part(self._target)
        if record is None or not self.path.exists():
            return set()
        is_same = (record.source, record.piece_bytes) == (self._source, PIECE_BYTES)
        is_whole = self.path.stat().st_size == self._size_bytes
        return set(record.done) if is_same and is_whole else set()

    def _save(self) -> None:
        done = tuple(sorted(self._done))
        atomic.sync_file(self.path)
        record = records.PartRecord(self._source, PIECE_BYTES, done)
        atomic.write_whole(records.part_record_of(self._target), codec.to_document(record))
        self._saved_s = time.monotonic()
