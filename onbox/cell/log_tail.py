"""The end of a cell's log, of its last attempt only: what the attempt's verdict is read from."""

from __future__ import annotations

import contextlib
import os
from typing import BinaryIO

from boxcar.shared.disk import regular_file
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import attempt
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.record import dataclass
from boxcar.shared.triage.log_lines import without_colours

# Eight ranks that each dump their stacks fill some hundred kilobytes after the error.
LONGEST_BYTES = 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
# Where more is before it, nobody counts: a place in the log is not worth seconds of a queue.
_MOST_COUNTED_BYTES = 1024**3


@dataclass(frozen=True)
class Tail:
    """`begins_at_line`: the number of its first line in the cell's log, 0 where nobody counted."""

    text: str = ""
    begins_at_line: int = 1


def read(scratch: ScratchPaths, cell: str) -> Tail:
    """Empty for a log that is not there or cannot be read."""
    begin = _begins_at_bytes(scratch, cell)
    with contextlib.suppress(OSError), regular_file.open_at(scratch.log(cell)) as file:
        return of_file(file, begin)
    return Tail()


def of_file(file: BinaryIO, begin: int = 0, longest_bytes: int = LONGEST_BYTES) -> Tail:
    """Its end from the byte `begin` on; a log that somebody has cut is taken whole."""
    size_bytes = file.seek(0, os.SEEK_END)
    at = max(begin if begin <= size_bytes else 0, size_bytes - longest_bytes)
    first = _lines_before(file, at)
    file.seek(at)
    text = file.read(longest_bytes).decode("utf-8", "replace")
    return Tail(without_colours(text), first)


def _lines_before(file: BinaryIO, at: int) -> int:
    if at > _MOST_COUNTED_BYTES:
        return 0
    file.seek(0)
    count, left = 1, at
    while left > 0 and (data := file.read(min(_CHUNK_BYTES, left))):
        count += data.count(b"\n")
        left -= len(data)
    return count


def _begins_at_bytes(scratch: ScratchPaths, cell: str) -> int:
    """0 where it was not written down: then the words of an earlier attempt are looked at too."""
    with contextlib.suppress(DamagedError, OSError):
        running = attempt.read_running(scratch.running(cell))
        return running.log_begins_at_bytes if running else 0
    return 0
