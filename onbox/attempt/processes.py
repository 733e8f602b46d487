"""What an attempt has started, written down while its wrapper lives.

A daemon that has left its session, its environment and its files behind is known by nothing but its
parents; these are gone with the wrapper. So the wrapper writes down what it sees, and whoever comes
after it ends what is left.
"""

from __future__ import annotations

import contextlib
import os
import time

from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.shared.files.attempt import Process, Processes, read_processes
from boxcar.shared.paths import ScratchPaths
from onbox.machine import process

LOOK_EVERY_S = 1.0
# A box with thousands of processes is not looked through all the time.
_LEAST_PAUSES = 100


class Record:
    """The wrapper's: `look` writes down its living descendants where they have changed."""

    def __init__(self, scratch: ScratchPaths, cell: str, attempt: int) -> None:
        self._path = scratch.processes(cell)
        self._cell, self._attempt = cell, attempt
        self._written: tuple[Process, ...] | None = None

    def look(self) -> float:
        """How many seconds the next look may wait."""
        began = time.monotonic()
        found = tuple(
            Process(pid, started)
            for pid in sorted(process.descendants(os.getpid()))
            if (started := process.start_time(pid))
        )
        if found != self._written:
            made = Processes(self._cell, self._attempt, process.boot_id(), found)
            with contextlib.suppress(OSError):  # a full disk: the next look tries again
                atomic.write_whole(self._path, codec.to_document(made))
                self._written = found
        return max(LOOK_EVERY_S, _LEAST_PAUSES * (time.monotonic() - began))


def left_of(scratch: ScratchPaths, cell: str, attempt: int) -> list[int]:
    """What still lives of those that were written down, and of what they started."""
    try:
        seen = read_processes(scratch.processes(cell))
    except (DamagedError, OSError):
        return []
    if seen is None or seen.attempt != attempt:
        return []
    left = [p.pid for p in seen.processes if process.is_same(p.pid, p.start_time, seen.boot_id)]
    return [*left, *(below for pid in left for below in process.descendants(pid))]
