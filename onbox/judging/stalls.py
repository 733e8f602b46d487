"""When a cell that runs has stood still for longer than this run explains. Pure.

What is usual is learned from the run itself, phase by phase: how long its attempts take until they
make their first step, and how long they are silent between two signs of life. Until three of a
phase are known nothing is said of it.
"""

from __future__ import annotations

import statistics
from collections import deque

from boxcar.shared.record import dataclass

START, STEPS = "start", "steps"
TIMES_MEDIAN, TIMES_LONGEST, FLOOR_S, LEAST = 10, 2, 15 * 60.0, 3
_REMEMBERED = 200
# Whoever looks less often than that was suspended, and the cell with it.
LONGEST_GAP_S = 120.0


@dataclass(frozen=True)
class Stall:
    """The attempt has stood still in this phase for `silent_s`, where `limit_s` is the most that
    this run explains. `is_over`: it goes on again.
    """

    cell: str
    attempt: int
    phase: str
    silent_s: float
    limit_s: float
    is_over: bool = False


class Stalls:
    """Follows the cells of one agent look by look. Times are of a clock that never goes back."""

    def __init__(self) -> None:
        self._took: dict[str, deque[float]] = {
            phase: deque(maxlen=_REMEMBERED) for phase in (START, STEPS)
        }
        self._longest = dict.fromkeys(self._took, 0.0)
        self._cells: dict[str, _Followed] = {}

    def look(
        self, cell: str, attempt: int, sign: object, now_s: float, *, is_stepping: bool
    ) -> Stall | None:
        """What is to be told now, each once. `sign` changes whenever the attempt gets on;
        `is_stepping`: it has made a step.
        """
        one = self._cells.get(cell)
        if one is None or one.attempt != attempt:
            self._cells[cell] = _Followed(attempt, sign, now_s)
            return None
        if (gap_s := now_s - one.looked_s) > LONGEST_GAP_S:
            one.since_s += gap_s
        one.looked_s = now_s
        if one.phase == START and is_stepping:
            over = self._over(cell, one, now_s)
            self._learn(START, now_s - one.since_s)
            one.phase, one.since_s, one.sign = STEPS, now_s, sign
            return over
        if one.phase == STEPS and sign != one.sign:
            over = self._over(cell, one, now_s)
            self._learn(STEPS, now_s - one.since_s)
            one.since_s, one.sign = now_s, sign
            return over
        limit_s = self.limit_s(one.phase)
        if one.told or limit_s is None or now_s - one.since_s < limit_s:
            return None
        one.told = Stall(cell, attempt, one.phase, now_s - one.since_s, limit_s)
        return one.told

    def limit_s(self, phase: str) -> float | None:
        """The longest that this run explains; None as long as too little is known."""
        took = self._took[phase]
        if len(took) < LEAST:
            return None
        usual_s = TIMES_MEDIAN * statistics.median(took)
        return max(FLOOR_S, usual_s, TIMES_LONGEST * self._longest[phase])

    def works(self, cell: str) -> None:
        """Another witness saw it at work: what was found is no stall, and its time starts anew."""
        if one := self._cells.get(cell):
            one.since_s, one.told = one.looked_s, None

    def stands_still(self, stall: Stall) -> bool:
        """Whether it still does, since that was found."""
        one = self._cells.get(stall.cell)
        return one is not None and one.told == stall

    def ends(self, cell: str) -> None:
        self._cells.pop(cell, None)

    def _learn(self, phase: str, took_s: float) -> None:
        self._took[phase].append(took_s)
        self._longest[phase] = max(self._longest[phase], took_s)

    def _over(self, cell: str, one: _Followed, now_s: float) -> Stall | None:
        told, one.told = one.told, None
        if told is None:
            return None
        return Stall(cell, told.attempt, told.phase, now_s - one.since_s, told.limit_s, True)


class _Followed:
    def __init__(self, attempt: int, sign: object, now_s: float) -> None:
        self.attempt, self.sign, self.phase = attempt, sign, START
        self.since_s = self.looked_s = now_s
        self.told: Stall | None = None
