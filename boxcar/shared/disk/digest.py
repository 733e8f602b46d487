"""SHA-256, as the name of a content: of bytes, of a file, of a JSON value in its one spelling."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

# Small enough that the agent stays small: a copy holds a few of them.
BLOCK_BYTES = 1024 * 1024


def of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def of_json(value: object) -> str:
    """The digest of a value that is independent of key order and white space."""
    spelled = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return of_bytes(spelled.encode(errors="surrogatepass"))


def of_file(
    path: Path, *, from_disk: bool = False, on_chunk: Callable[[int], None] | None = None
) -> str:
    """The digest of a file's content, in hexadecimal.

    `from_disk` asks the kernel to forget its cached pages first, so that what is hashed is what the
    disk gives back and not what was just written (a write that the disk lost is seen only so).
    `on_chunk(size_bytes)` is called after each block, for progress and heartbeats.
    """
    sha = hashlib.sha256()
    # Without waiting: a cell may just have put a pipe in the place of its file.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb", buffering=0) as file:
        if from_disk:
            forget_cached_pages(file.fileno())
        while block := file.read(BLOCK_BYTES):
            sha.update(block)
            if on_chunk:
                on_chunk(len(block))
    return sha.hexdigest()


def forget_cached_pages(fd: int) -> None:
    # macOS has no posix_fadvise: there the read-back may come from memory.
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def short(digest: str) -> str:
    """The first twelve characters: what people read and type."""
    return digest[:12]
