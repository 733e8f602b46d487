"""When to kill: chosen at random from what the uninterrupted run showed, repeatable by its seed.

Pure. A kill comes after something was saved, where anything ever is, and before the last step, so
that there is something to go on from and something left to do. A script that reports no step is
killed after one of its saves, and one that does not even save by the clock.
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from boxcar.training.rehearse.observer import Seen


@dataclass(frozen=True)
class Kill:
    """Kill `wait_s` after a step was reported, or after so many saves, or after the start.

    Saves are counted from the start that is to be killed.
    """

    wait_s: float
    after_step: int | None = None
    after_saves: int | None = None

    def is_near(self, seen: Seen) -> bool:
        """Whether only `wait_s` is left."""
        if self.after_step is not None:
            return seen.last_step is not None and seen.last_step >= self.after_step
        return len(seen.saves) >= (self.after_saves or 0)

    def __str__(self) -> str:
        when = f"its save number {self.after_saves}" if self.after_saves else "its start"
        if self.after_step is not None:
            when = f"step {self.after_step} is reported"
        return f"{self.wait_s:.2f} s after {when}"


def choose_kills(seen: Seen, duration_s: float, count: int, seed: int) -> list[Kill]:
    """The kills in their order; fewer than `count` where the run has not so many moments."""
    dice = random.Random(seed)
    if steps := _steps(seen):
        # Not always right after a report: the script may do one thing before it and one after it.
        gap_s = _gap_s([report.seconds for report in seen.reports])
        chosen = sorted(dice.sample(steps, min(count, len(steps))))
        return [Kill(round(dice.random() * gap_s, 3), after_step=step) for step in chosen]
    if len(seen.saves) > 1:
        return _by_saves(seen, count, dice)
    begin_s = seen.saves[0].seconds if seen.saves else 0.2 * duration_s
    return [Kill(round(dice.uniform(begin_s, max(begin_s, 0.9 * duration_s)), 3))]


def earlier_kill(kill: Kill, seen: Seen) -> Kill:
    """For a run that had ended before it: at once, after half as much."""
    if kill.after_step is not None:
        before = [step for step in _steps(seen) if step <= kill.after_step]
        return Kill(0.0, after_step=before[(len(before) - 1) // 2] if before else kill.after_step)
    if kill.after_saves is not None:
        return Kill(0.0, after_saves=max(1, kill.after_saves // 2))
    return Kill(kill.wait_s / 2)


def _steps(seen: Seen) -> list[int]:
    """The steps after which a kill makes sense."""
    all_steps = sorted({report.step for report in seen.reports})[:-1]
    saved_s = seen.saves[0].seconds if seen.saves else None
    first_seen = {report.step: report.seconds for report in reversed(seen.reports)}
    saved = [s for s in all_steps if saved_s is not None and first_seen[s] > saved_s]
    return saved or all_steps


def _by_saves(seen: Seen, count: int, dice: random.Random) -> list[Kill]:
    gap_s = _gap_s([save.seconds for save in seen.saves])
    numbers = range(1, len(seen.saves))
    chosen = sorted(dice.sample(numbers, min(count, len(numbers))))
    return [
        Kill(round(dice.random() * gap_s, 3), after_saves=number - before)
        for before, number in itertools.pairwise([0, *chosen])
    ]


def _gap_s(times: Sequence[float]) -> float:
    gaps = [later - before for before, later in itertools.pairwise(times)]
    return statistics.median(gaps) if gaps else 0.0
