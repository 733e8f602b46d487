"""What is kept of a file: the part that has come, and beside it the record and the receipt."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.disk import atomic, digest
from boxcar.shared.disk.mounts import is_full
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files import codec


@dataclass(frozen=True)
class PartRecord:
    """The pieces of NAME.part that are on the disk for certain, and the source they are of."""

    FORMAT: ClassVar[str] = "fetch-part"
    VERSION: ClassVar[int] = 1

    source: str
    piece_bytes: int
    done: tuple[int, ...]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Receipt:
    """A file that came whole. `checked_by` says what proved it: sha256, md5, or its size alone."""

    FORMAT: ClassVar[str] = "fetched"
    VERSION: ClassVar[int] = 1

    url: str  # as it may be shown
    place: str  # shown.identity of the URL
    size_bytes: int
    mtime_ns: int
    sha256: str
    checked_by: str
    version: str
    fetched_at: str
    extra: dict[str, Any] = field(default_factory=dict)


def part_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def part_record_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part.json")


def receipt_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.receipt.json")


def next_receipt_of(target: Path) -> Path:
    """The receipt that is written before the file gets its name, so that no crash orphans it."""
    return target.with_name(f".{target.name}.receipt.next.json")


def read_part(target: Path) -> PartRecord | None:
    """The record of a part; None where there is none that can be used."""
    path = part_record_of(target)
    try:
        return codec.from_document(PartRecord, path.read_bytes(), str(path))
    except (FileNotFoundError, DamagedError):
        return None


def find_receipt(target: Path, *, by_content: bool) -> Receipt | None:
    """The receipt of the file as it lies there; None where it is not what was fetched.

    Its size and time tell. `by_content`: where only the time differs (a copy, a restored disk), its
    content is read. Raises DamagedError for a receipt that cannot be read.
    """
    try:
        stat = target.stat()
    except FileNotFoundError:
        return None
    same_size = [found for found in _receipts(target) if found.size_bytes == stat.st_size]
    for found in same_size:
        if found.mtime_ns == stat.st_mtime_ns:
            return found
    sha256 = digest.of_file(target) if same_size and by_content else ""
    return next((found for found in same_size if found.sha256 == sha256), None)


def drop_part(target: Path) -> None:
    part_record_of(target).unlink(missing_ok=True)
    part_of(target).unlink(missing_ok=True)


def give_name(target: Path, record: Receipt) -> None:
    """NAME.part becomes NAME; after a crash anywhere in here a receipt fits what lies there."""
    atomic.write_whole(next_receipt_of(target), codec.to_document(record))
    part_of(target).replace(target)
    atomic.sync_folder(target.parent)
    next_receipt_of(target).replace(receipt_of(target))
    part_record_of(target).unlink(missing_ok=True)
    atomic.sync_folder(target.parent)


def put_receipt(target: Path, record: Receipt) -> None:
    atomic.write_whole(receipt_of(target), codec.to_document(record))


def digests(path: Path) -> dict[str, str]:
    """SHA-256 and MD5 of what the disk gives back, which also proves that it was written."""
    sums = {"sha256": hashlib.sha256(), "md5": hashlib.md5(usedforsecurity=False)}
    with path.open("rb", buffering=0) as file:
        digest.forget_cached_pages(file.fileno())
        while block := file.read(digest.BLOCK_BYTES):
            for one in sums.values():
                one.update(block)
    return {name: one.hexdigest() for name, one in sums.items()}


def _receipts(target: Path) -> list[Receipt]:
    found = []
    for path in (receipt_of(target), next_receipt_of(target)):
        if path.exists():
            found.append(codec.from_document(Receipt, path.read_bytes(), str(path)))
    return found


# --- NAME.part: what has come of a file, written piece by piece from any thread, and its record.
# A piece counts as done only once it was fsynced before the record that says so, so that after a
# power cut no hole is taken for data.


PIECE_BYTES = 16 * 1024 * 1024
# What a kill may cost: the pieces that came since the record was written.
SAVE_EVERY_S = 2.0


class PartialFile:
    """`source` is the identity of what it is a part of; another one's part is thrown away."""

    def __init__(self, target: Path, source: str, size_bytes: int) -> None:
        self.path, self._target = part_of(target), target
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
            drop_part(self._target)
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
                    f"{self.path}: {error.strerror}; {self._size_bytes} bytes are expected, "
                    f"{self.done_bytes} have arrived and are kept"
                ) from error
            raise
        finally:
            os.close(fd)

    def _usable(self) -> set[int]:
        """The pieces of a former attempt that belong to this very source."""
        record = read_part(self._target)
        if record is None or not self.path.exists():
            return set()
        is_same = (record.source, record.piece_bytes) == (self._source, PIECE_BYTES)
        is_whole = self.path.stat().st_size == self._size_bytes
        return set(record.done) if is_same and is_whole else set()

    def _save(self) -> None:
        done = tuple(sorted(self._done))
        atomic.sync_file(self.path)
        record = PartRecord(self._source, PIECE_BYTES, done)
        atomic.write_whole(part_record_of(self._target), codec.to_document(record))
        self._saved_s = time.monotonic()
