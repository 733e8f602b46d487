"""SHA-256, as the name of a content: of bytes, of a file, of a JSON value in its one spelling."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from boxcar.shared.sentence import Sentence, _

# Whether two files have the same bytes, of which never more than a piece is held: a journal of a
# large run has hundreds of MB.


_PIECE_BYTES = 1 << 18


def begins_with(path: Path, beginning: Path) -> bool:
    """Whether a file begins with all of another. Raises OSError."""
    with path.open("rb") as file, beginning.open("rb") as other:
        return _begins(file, other)


def has_same_bytes(path: Path, copy: Path) -> bool:
    """Raises OSError."""
    with path.open("rb") as file, copy.open("rb") as other:
        return _begins(file, other) and not file.read(1)


def _begins(file: BinaryIO, other: BinaryIO) -> bool:
    while piece := other.read(_PIECE_BYTES):
        if file.read(len(piece)) != piece:
            return False
    return True


# Small enough that the agent stays small: a copy holds a few of them.
BLOCK_BYTES = 1024 * 1024
_MANY_BLOCKS = 8
# A kernel drops no part of a run of pages, and has them in runs of up to 2 MiB.
_FORGOTTEN_AT_ONCE_BYTES = 4 * 1024 * 1024


def of_bytes(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def of_json(value: object) -> str:
    """The digest of a value that is independent of key order and white space."""
    spelled = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return of_bytes(spelled.encode(errors="surrogatepass"))


def of_file(
    path: Path | str,
    *,
    from_disk: bool = False,
    on_chunk: Callable[[int], None] | None = None,
) -> str:
    """The digest of a file's content, in hexadecimal.

    `from_disk` asks the kernel to forget its cached pages first, so that what is hashed is what the
    disk gives back and not what was just written (a write that the disk lost is seen only so), and
    to forget what was read: memory stays with the data set of the training beside.
    `on_chunk(size_bytes)` is called after each block, for progress and heartbeats.
    """
    sha = hashlib.sha256()
    _each_block(path, sha.update, on_chunk, from_disk=from_disk)
    return sha.hexdigest()


def crc32_of_file(path: Path, *, from_disk: bool = False) -> int:
    """The CRC-32 of a file's content: a fifth of the work, against damage alone."""
    import zlib

    found = 0

    def take(block: bytes | memoryview) -> None:
        nonlocal found
        found = zlib.crc32(block, found)

    _each_block(path, take, from_disk=from_disk)
    return found


def _each_block(
    path: Path | str,
    take: Callable[[bytes | memoryview], object],
    on_chunk: Callable[[int], None] | None = None,
    *,
    from_disk: bool,
) -> None:
    # Without waiting: a cell may just have put a pipe in the place of its file.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if from_disk:
            forget_cached_pages(fd)
            on_chunk = _forgetting(fd, on_chunk)
        _each_block_of_fd(fd, take, on_chunk)
    finally:
        os.close(fd)


def _forgetting(fd: int, on_chunk: Callable[[int], None] | None) -> Callable[[int], None]:
    read_bytes = forgotten_bytes = 0

    def on_read(size_bytes: int) -> None:
        nonlocal read_bytes, forgotten_bytes
        read_bytes += size_bytes
        if read_bytes - forgotten_bytes >= _FORGOTTEN_AT_ONCE_BYTES:
            forget_cached_pages(fd, forgotten_bytes, read_bytes)
            forgotten_bytes = read_bytes
        if on_chunk:
            on_chunk(size_bytes)

    return on_read


def _each_block_of_fd(
    fd: int,
    take: Callable[[bytes | memoryview], object],
    on_chunk: Callable[[int], None] | None,
) -> None:
    size_bytes = os.fstat(fd).st_size
    if size_bytes > _MANY_BLOCKS * BLOCK_BYTES:
        from boxcar.shared.disk import pipeline  # threads are for those who have much to hash

        pipeline.stream(fd, [take], BLOCK_BYTES, on_chunk)
        return
    # Never less than a byte: a file may have grown since, and a pipe has no size.
    while block := os.read(fd, min(size_bytes + 1, BLOCK_BYTES)):
        take(block)
        if on_chunk:
            on_chunk(len(block))


def forget_cached_pages(fd: int, begin: int = 0, end: int = 0) -> None:
    """Of the bytes from `begin` to `end`; 0 is the end of the file."""
    # macOS has no posix_fadvise: there the read-back may come from memory.
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, begin, max(0, end - begin), os.POSIX_FADV_DONTNEED)


def short(digest: str) -> str:
    """The first twelve characters: what people read and type."""
    return digest[:12]


def other(found: str, expected: str) -> Sentence:
    """Two that differ, as far as it takes to see it."""
    pairs = zip(found, expected, strict=False)
    alike = sum(1 for pair in itertools.takewhile(lambda both: both[0] == both[1], pairs))
    length = max(len(short(found)), alike + 1)
    return _(
        "has SHA-256 {found}…, expected {expected}…",
        found=found[:length],
        expected=expected[:length],
    )
