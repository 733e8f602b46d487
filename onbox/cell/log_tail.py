"""The end of a cell's log, of its last attempt only: what the attempt's verdict is read from."""

from __future__ import annotations

import contextlib
import os
import re

from boxcar.shared.disk import regular_file
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import attempt
from boxcar.shared.paths import ScratchPaths

LONGEST_BYTES = 64 * 1024
# What a library sets around words for a terminal would split what is looked for, and be shown.
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def read(scratch: ScratchPaths, cell: str) -> str:
    """'' for a log that is not there or cannot be read."""
    begin = _begins_at_bytes(scratch, cell)
    with contextlib.suppress(OSError), regular_file.open_at(scratch.log(cell)) as file:
        size_bytes = file.seek(0, os.SEEK_END)
        # A log that somebody has cut is shown whole.
        file.seek(max(begin if begin <= size_bytes else 0, size_bytes - LONGEST_BYTES))
        return _COLOURS.sub("", file.read(LONGEST_BYTES).decode("utf-8", "replace"))
    return ""


def _begins_at_bytes(scratch: ScratchPaths, cell: str) -> int:
    """0 where it was not written down: then the words of an earlier attempt are looked at too."""
    with contextlib.suppress(DamagedError, OSError):
        running = attempt.read_running(scratch.running(cell))
        return running.log_begins_at_bytes if running else 0
    return 0
