"""The numbers that the job names, while a cell runs: the newest that could be taken.

A thread waits for the child that reads them, so the agent's loop never does. They are for people
who look; what a receipt says is taken anew from what was published.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import attempt
from boxcar.shared.files.plan import LOG, Metric
from boxcar.shared.metrics import measure, read
from boxcar.shared.paths import ScratchPaths
from onbox.place import Place

# A child costs a tenth of a second of CPU.
EVERY_S = 15.0
MOST_LATE = 2


class LiveMetrics:
    """`warn(what, text, cell)` hears of an expression that was switched off."""

    def __init__(self, place: Place, warn: Callable[[str, str, str], None]) -> None:
        self._place = place
        self._warn = warn
        self._cell: _Cell | None = None

    def numbers(self, cell: str, number: int | None) -> dict[str, float]:
        """What is known by now of this attempt, in the order of the job; returns at once."""
        metrics = self._place.plan.metrics
        if not metrics:
            return {}
        if self._cell is None or self._cell.is_of != (cell, number):
            self._cell = _Cell(self._place.scratch, cell, number, metrics)
        self._cell.look_again(lambda text: self._warn("metric_off", text, cell))
        found = self._cell.known
        return {metric.name: found[metric.name] for metric in metrics if metric.name in found}


class _Cell:
    """One attempt: what was found until now, and how far its log was read."""

    def __init__(
        self, scratch: ScratchPaths, cell: str, number: int | None, metrics: tuple[Metric, ...]
    ) -> None:
        self.is_of = (cell, number)
        self.known: dict[str, float] = {}
        self._scratch = scratch
        self._metrics = metrics
        self._late: Counter[str] = Counter()
        self._seen_bytes = 0
        self._before: Any = None
        self._next_at = 0.0
        self._thread: threading.Thread | None = None

    def look_again(self, warn: Callable[[str], None]) -> None:
        """Begin another look where one is due and something has changed."""
        if (self._thread and self._thread.is_alive()) or time.monotonic() < self._next_at:
            return
        now = self._stamps()
        if now != self._before:
            self._before = now
            self._thread = threading.Thread(target=self.look, args=(warn,), daemon=True)
            self._thread.start()

    def look(self, warn: Callable[[str], None]) -> None:
        left = [metric for metric in self._metrics if self._late[metric.name] < MOST_LATE]
        size_bytes = _size_bytes(self._log)
        [found] = measure.take(left, [self._left(size_bytes)])
        for metric, number in zip(left, found, strict=True):
            if number.value is not None:
                self.known[metric.name] = self._better(metric, number.value)
            elif number.note == measure.LATE:
                self._late[metric.name] += 1
                if self._late[metric.name] == MOST_LATE:
                    warn(f"{metric.name} is not shown while {self.is_of[0]} runs: {metric.of!r} "
                         "took longer than 1 s of CPU, twice")  # fmt: skip
        self._seen_bytes = size_bytes
        self._next_at = time.monotonic() + EVERY_S

    @property
    def _log(self) -> Path:
        return self._scratch.log(self.is_of[0])

    def _left(self, size_bytes: int) -> measure.Left:
        """The end of the log: what is new, and the line in which the look before may have ended."""
        new = self._seen_bytes - 4 * read.LONGEST_LINE
        begins_at = max(self._begins_at_bytes(), new, size_bytes - read.WINDOW_BYTES)
        return measure.Left(self._scratch.out(self.is_of[0]), self._log, begins_at)

    def _better(self, metric: Metric, value: float) -> float:
        """Of a log only the end was looked at; a file is always read whole."""
        before = self.known.get(metric.name)
        if metric.source != LOG or metric.best is None or before is None:
            return value
        return min(before, value) if metric.best == "min" else max(before, value)

    def _begins_at_bytes(self) -> int:
        with contextlib.suppress(DamagedError, OSError):
            running = attempt.read_running(self._scratch.running(self.is_of[0]))
            return running.log_begins_at_bytes if running else 0
        return 0

    def _stamps(self) -> list[tuple[int, int] | None]:
        out = self._scratch.out(self.is_of[0])
        files = (out / metric.of for metric in self._metrics if metric.source != LOG)
        return [_stamp(path) for path in (self._log, *files)]


def _stamp(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_size, found.st_mtime_ns
    return None


def _size_bytes(path: Path) -> int:
    stamp = _stamp(path)
    return stamp[0] if stamp else 0
