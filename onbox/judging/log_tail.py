"""The end of a cell's log, of its last attempt only: what the attempt's verdict is read from."""

from __future__ import annotations

import contextlib

from boxcar.shared.disk import regular_file
from boxcar.shared.files import attempt
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.triage import log_lines
from boxcar.shared.triage.log_lines import Tail

# Eight ranks that each dump their stacks fill some hundred kilobytes after the error.
LONGEST_BYTES = 1024 * 1024
_PART_BYTES = 64 * 1024


def read(scratch: ScratchPaths, cell: str) -> Tail:
    """Empty for a log that is not there or cannot be read."""
    begin = attempt.log_begins_at_bytes(scratch.running(cell))
    with contextlib.suppress(OSError), regular_file.open_at(scratch.log(cell)) as file:
        return log_lines.tail_of_file(file, begin, LONGEST_BYTES)
    return Tail()


def before(scratch: ScratchPaths, cell: str) -> str:
    """What earlier attempts wrote: where it begins, and where it ends."""
    begin = attempt.log_begins_at_bytes(scratch.running(cell))
    with contextlib.suppress(OSError), regular_file.open_at(scratch.log(cell)) as file:
        head = file.read(min(begin, _PART_BYTES))
        file.seek(max(len(head), begin - _PART_BYTES))
        return (head + file.read(max(0, begin - file.tell()))).decode(errors="replace")
    return ""
