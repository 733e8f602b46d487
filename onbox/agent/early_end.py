"""Ending an attempt before its time, because it stands still or its number is none any more.

The journal says so first (`Reporter.ended_early`), so an agent that comes after goes on with it.
One that stands still would not hear a SIGTERM: its ranks are aborted, which has Python write their
stacks to the log. What is left then is told to leave, and killed at the end of its grace.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import time
from collections.abc import Callable

from boxcar.shared.news.wanted import STALLED
from onbox.agent import black_box
from onbox.machine.place import Place
from onbox.queue.reporter import Reporter

# For the stacks of an aborted rank, and for the others to be reported with it.
ABORT_GRACE_S = 15.0


class EarlyEnd:
    def __init__(self, place: Place, reporter: Reporter, cell: str, number: int) -> None:
        self._place, self._reporter = place, reporter
        self._cell, self._number = cell, number
        self._leaves_at = math.inf

    def is_due(self) -> bool:
        """Whether the attempt is to be told to leave now."""
        if self._leaves_at == math.inf:
            event = self._reporter.ended_early(self._cell, self._number)
            if event is None:
                return False
            self._leaves_at = time.monotonic()
            if event.data.get("what") == STALLED:
                self._leaves_at += ABORT_GRACE_S
                abort(black_box.ranks_of(self._place, self._cell, self._number))
        return time.monotonic() >= self._leaves_at


def abort(pids: list[int], kill: Callable[[int, int], None] = os.kill) -> None:
    """Each leaves its stacks, and none its memory: a core of a training fills a disk."""
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            hard = resource.prlimit(pid, resource.RLIMIT_CORE)[1]
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, hard))
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGABRT)
