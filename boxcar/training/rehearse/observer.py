"""What a run shows while it is at work, its steps and its saves, and when to kill it.

Looked at from outside, by the progress file and by what `resume` means, so that nothing is asked of
the script.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.seen_checkpoint import Seen as Checkpoint
from boxcar.shared.files import progress
from boxcar.shared.sentence import _

# A rehearsal is over before a folder without an index could be a minute old.
_A_MINUTE_LATER_NS = sys.maxsize


@dataclass(frozen=True)
class Report:
    """One progress line, and when it was seen, in seconds after the start."""

    seconds: float
    line: dict[str, Any]

    @property
    def step(self) -> int:
        return int(self.line["step"])


@dataclass(frozen=True)
class Save:
    """A new checkpoint, or a change of it. `after_step`: the last step reported before, if any."""

    seconds: float
    after_step: int | None


@dataclass
class Seen:
    """All that one start of the cell has shown so far."""

    reports: list[Report] = field(default_factory=list)
    saves: list[Save] = field(default_factory=list)

    @property
    def last_step(self) -> int | None:
        return self.reports[-1].step if self.reports else None

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [report.line for report in self.reports]


class Observer:
    """Looks at one {out}; what lies there already when it is made is not counted."""

    def __init__(self, out: Path, resume: str) -> None:
        self.seen = Seen()
        self._progress, self._out, self._resume = out / progress.FILE, out, resume
        self._read_bytes = _size(self._progress)
        self._saved = self._newest()

    def look(self, seconds: float) -> Seen:
        """Note what is new. The save first: a report that is seen later may be younger."""
        saved = self._newest()
        if saved is not None and saved != self._saved:
            self.seen.saves.append(Save(seconds, self.seen.last_step))
            self._saved = saved
        for line in self._new_lines():
            self.seen.reports.append(Report(seconds, line))
        return self.seen

    def _newest(self) -> Checkpoint | None:
        """The newest that is not half written, as far as one can see."""
        with contextlib.suppress(OSError):  # a link out of {out}, or a file that is replaced now
            found = resume_match.find_checkpoints(self._out, self._resume)
            return next((seen for seen in found if seen.is_whole(_A_MINUTE_LATER_NS)), None)
        return None

    def _new_lines(self) -> list[dict[str, Any]]:
        size = _size(self._progress)
        if size < self._read_bytes:  # the script began the file anew
            self._read_bytes = 0
        if size == self._read_bytes:
            return []
        with self._progress.open("rb") as file:
            file.seek(self._read_bytes)
            whole = file.read().rpartition(b"\n")[0]
        self._read_bytes += len(whole) + 1 if whole else 0
        return [line for text in whole.splitlines() if (line := _parsed(text))]


def _parsed(text: bytes) -> dict[str, Any] | None:
    line = progress.parse_line(text)
    return line if line and type(line.get("step")) is int else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# --- When to kill: chosen at random from what the uninterrupted run showed, repeatable by its seed.
# Pure. A kill comes after something was saved, where anything ever is, and before the last step, so
# that there is something to go on from and something left to do. A script that reports no step is
# killed after one of its saves.


@dataclass(frozen=True)
class Kill:
    """Kill `wait_s` after a step was reported, or after so many saves of the start to be killed."""

    wait_s: float
    after_step: int | None = None
    after_saves: int = 0

    def is_near(self, seen: Seen) -> bool:
        """Whether only `wait_s` is left."""
        if self.after_step is not None:
            return seen.last_step is not None and seen.last_step >= self.after_step
        return len(seen.saves) >= self.after_saves

    @property
    def when(self) -> str:
        if self.after_step is not None:
            words = {"s": self.wait_s, "step": self.after_step}
            return _("{s:.2f} s after step {step} is reported", **words)
        return _("{s:.2f} s after its save number {n}", s=self.wait_s, n=self.after_saves)


def choose_kills(seen: Seen, count: int, seed: int) -> list[Kill]:
    """The kills in their order; fewer than `count` where the run has not so many moments, none
    where it neither reports nor saves.
    """
    dice = random.Random(seed)
    if steps := _steps(seen):
        # Not always right after a report: the script may do one thing before it and one after it.
        gap_s = _gap_s([report.seconds for report in seen.reports])
        chosen = sorted(dice.sample(steps, min(count, len(steps))))
        return [Kill(round(dice.random() * gap_s, 3), after_step=step) for step in chosen]
    gap_s = _gap_s([save.seconds for save in seen.saves])
    numbers = range(1, len(seen.saves)) or range(1, 1 + len(seen.saves))
    chosen = sorted(dice.sample(numbers, min(count, len(numbers))))
    return [
        Kill(round(dice.random() * gap_s, 3), after_saves=number - before)
        for before, number in itertools.pairwise([0, *chosen])
    ]


def earlier_kill(kill: Kill, seen: Seen) -> Kill:
    """For a run that had ended before it: at once, after half as much."""
    if kill.after_step is None:
        return Kill(0.0, after_saves=max(1, kill.after_saves // 2))
    before = [step for step in _steps(seen) if step <= kill.after_step]
    return Kill(0.0, after_step=before[(len(before) - 1) // 2] if before else kill.after_step)


def _steps(seen: Seen) -> list[int]:
    """The steps after which a kill makes sense."""
    all_steps = sorted({report.step for report in seen.reports})[:-1]
    saved_s = seen.saves[0].seconds if seen.saves else None
    first_seen = {report.step: report.seconds for report in reversed(seen.reports)}
    saved = [s for s in all_steps if saved_s is not None and first_seen[s] > saved_s]
    return saved or all_steps


def _gap_s(times: Sequence[float]) -> float:
    gaps = [later - before for before, later in itertools.pairwise(times)]
    return statistics.median(gaps) if gaps else 0.0
