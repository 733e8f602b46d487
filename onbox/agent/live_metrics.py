"""The numbers that the job names, while a cell runs: the last that could be taken, and the best.

A thread waits for the child that reads them, so the agent's loop never does. They are for people
who look; what a receipt says is taken anew from what was published.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar

from boxcar.shared.files import attempt
from boxcar.shared.files.plan import LOG, Metric
from boxcar.shared.metrics import measure, read
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from onbox.machine.place import Place

# A child costs a tenth of a second of CPU.
EVERY_S = 15.0
MOST_LATE = 2

N = TypeVar("N")


@dataclass(frozen=True)
class LiveNumbers:
    """`last`: what was found last; None where that is no number, such as a loss that became NaN.
    `best`: of those that job.yaml wants the best of.
    """

    last: dict[str, Any] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)


class LiveMetrics:
    """`warn(what, text, cell)` hears of an expression that was switched off."""

    def __init__(self, place: Place, warn: Callable[[str, str, str], None]) -> None:
        self._place = place
        self._warn = warn
        self._cells: dict[str, _Cell] = {}

    def numbers(self, cell: str, number: int | None) -> LiveNumbers:
        """What is known by now of this attempt, in the order of the job; returns at once."""
        metrics = self._place.plan.metrics
        if not metrics:
            return LiveNumbers()
        one = self._cells.get(cell)
        if one is None or one.is_of != (cell, number):
            one = self._cells[cell] = _Cell(self._place.scratch, cell, number, metrics)
        one.look_again(lambda text: self._warn("metric_off", text, cell))
        return one.known

    def forget(self, cell: str) -> None:
        """It does not run any more."""
        self._cells.pop(cell, None)


class _Cell:
    """One attempt: what was found until now, and how far its log was read."""

    def __init__(
        self, scratch: ScratchPaths, cell: str, number: int | None, metrics: tuple[Metric, ...]
    ) -> None:
        self.is_of = (cell, number)
        self.known = LiveNumbers()
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
        of_best = [metric for metric in left if metric.best]
        asked = [*(replace(metric, best=None) for metric in left), *of_best]
        [found] = measure.take_numbers(asked, [self._left()])
        last, best = dict(self.known.last), dict(self.known.best)
        for metric, number in zip(left, found, strict=False):
            if number.value is not None or number.note.endswith(read.NO_NUMBER):
                last[metric.name] = number.value
            elif number.note == measure.LATE:
                self._count_late(metric, warn)
        for metric, number in zip(of_best, found[len(left) :], strict=True):
            if number.value is not None:
                best[metric.name] = _better(metric, best.get(metric.name), number.value)
        self.known = LiveNumbers(self._in_order(last), self._in_order(best))
        self._seen_bytes = size_bytes
        self._next_at = time.monotonic() + EVERY_S

    def _count_late(self, metric: Metric, warn: Callable[[str], None]) -> None:
        self._late[metric.name] += 1
        if self._late[metric.name] == MOST_LATE:
            text = _(
                "{metric} is not shown while {cell} runs: {expression!r} took longer than 1 s of "
                "CPU, twice",
                metric=metric.name,
                cell=self.is_of[0],
                expression=metric.of,
            )
            warn(text)

    def _in_order(self, found: dict[str, N]) -> dict[str, N]:
        """As the job names them."""
        return {one.name: found[one.name] for one in self._metrics if one.name in found}

    @property
    def _log(self) -> Path:
        return self._scratch.log(self.is_of[0])

    def _left(self) -> measure.Left:
        """Of the log what is new, and the line in which the look before may have ended."""
        begun_at = attempt.log_begins_at_bytes(self._scratch.running(self.is_of[0]))
        begins_at = max(begun_at, self._seen_bytes - 4 * read.LONGEST_LINE)
        out = self._scratch.out(self.is_of[0])
        return measure.Left(out, self._log, begins_at, is_growing=True)

    def _stamps(self) -> list[tuple[int, int] | None]:
        out = self._scratch.out(self.is_of[0])
        files = (out / metric.of for metric in self._metrics if metric.source != LOG)
        return [_stamp(path) for path in (self._log, *files)]


def _better(metric: Metric, before: float | None, value: float) -> float:
    """Of a log only what is new was looked at; a file is always read whole."""
    if metric.source != LOG or before is None:
        return value
    return min(before, value) if metric.best == "min" else max(before, value)


def _stamp(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_size, found.st_mtime_ns
    return None


def _size_bytes(path: Path) -> int:
    stamp = _stamp(path)
    return stamp[0] if stamp else 0
