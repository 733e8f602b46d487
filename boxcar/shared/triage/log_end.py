"""The end of a log, with the place where it begins in it."""

from __future__ import annotations

import os
from typing import BinaryIO

from boxcar.shared.record import dataclass
from boxcar.shared.triage.log_lines import without_colours

_CHUNK_BYTES = 1024 * 1024
_USUAL = "utf-8"
# Where more is before it, nobody counts: a place in the log is not worth seconds of a queue.
_MOST_COUNTED_BYTES = 1024**3


@dataclass(frozen=True)
class Tail:
    """`begins_at_line`: the number of its first line in the cell's log, 0 where nobody counted."""

    text: str = ""
    begins_at_line: int = 1


def tail_of_file(file: BinaryIO, begin: int = 0, longest_bytes: int = 1024 * 1024) -> Tail:
    """Its end from the byte `begin` on; a log that somebody has cut is taken whole."""
    file.seek(0)
    encoding = _encoding(file.read(2))
    size_bytes = file.seek(0, os.SEEK_END)
    at = max(begin if begin <= size_bytes else 0, size_bytes - longest_bytes)
    at += at % 2 if encoding != _USUAL else 0
    first = _lines_before(file, at)
    file.seek(at)
    return Tail(_text(file.read(longest_bytes), encoding), first)


def _lines_before(file: BinaryIO, at: int) -> int:
    if at > _MOST_COUNTED_BYTES:
        return 0
    file.seek(0)
    count, left = 1, at
    while left > 0 and (data := file.read(min(_CHUNK_BYTES, left))):
        count += data.count(b"\n")
        left -= len(data)
    return count


def tail_of_stream(file: BinaryIO, longest_bytes: int) -> Tail:
    """Of what can be read once only."""
    kept, first, encoding = b"", 1, ""
    while data := file.read(_CHUNK_BYTES):
        kept += data
        encoding = encoding or _encoding(kept[:2])
        over = len(kept) - longest_bytes
        if over > 0:
            over += over % 2
            first += kept[:over].count(b"\n")
            kept = kept[over:]
    return Tail(_text(kept, encoding or _USUAL), first)


def _encoding(head: bytes) -> str:
    """By a file's first two bytes: what PowerShell writes with > is UTF-16."""
    return {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(head, _USUAL)


def _text(data: bytes, encoding: str) -> str:
    """Without what a file with holes has in them: one that was cut while a program wrote it."""
    return without_colours(data.decode(encoding, "replace").replace("\0", "").lstrip("\ufeff"))
