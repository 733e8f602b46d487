"""How far something is, counted by who does it and read by who shows it.

To count costs next to nothing, so it may be done for each file; only who looks does the sums.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from boxcar.laptop.common import units
from boxcar.shared.errors import some
from boxcar.shared.pace import Pace
from boxcar.shared.sentence import Sentence, _

# A line now and then, where the output is no terminal: for what takes longer than a moment.


FIRST_S, EVERY_S = 10.0, 20.0


class NowAndThen:
    """From `start` to `stop` a thread tells the line that there is; both may come again."""

    def __init__(self, line: Callable[[], str | None], tell: Callable[[str], None]) -> None:
        self._line, self._tell = line, tell
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        wait_s = FIRST_S
        while not self._end.wait(wait_s):
            wait_s = EVERY_S
            # A log that nobody can write to is no reason to end what is under way.
            with contextlib.suppress(OSError):
                if line := self._line():
                    self._tell(line)


BYTES, THINGS = "bytes", "things"
_MOST_PARTS = 6


class Part:
    """What is done in one place, such as for one box. Any thread may tell."""

    def __init__(self, total: int, name: str) -> None:
        self.total, self.name = total, name
        self.done = 0
        self.doing: str | Sentence = ""
        self.left_s: float | None = None
        self.is_over = False
        self._lock = threading.Lock()

    def at(self, done: int) -> None:
        """So much is done in all, as a child of ours counts: it may begin again after a cut."""
        self.done = max(self.done, done)

    def add(self, number: int = 1) -> None:
        with self._lock:
            self.done += number

    def end(self) -> None:
        """All that was to do is done."""
        self.done, self.doing, self.is_over = self.total, "", True

    @property
    def is_at_work(self) -> bool:
        return not self.is_over and (bool(self.doing) or self.done > 0)


class Progress:
    """One thing that goes on, in one part or in several. `unit` is BYTES or THINGS. `is_left_told`:
    each part is told its `left_s`, which the speed would get wrong.
    """

    def __init__(
        self,
        what: str,
        unit: str = BYTES,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_left_told: bool = False,
    ) -> None:
        self.what, self.unit, self._clock = what, unit, clock
        self.is_left_told = is_left_told
        self.parts: list[Part] = []
        self._expected = 0
        self._on_part: Callable[[Part], None] = lambda part: None
        self._begun_s = clock()
        self._pace = Pace(self._begun_s)

    def part(self, total: int, name: str = "") -> Part:
        made = Part(total, name)
        self.parts.append(made)
        self._on_part(made)
        return made

    def tell_parts(self, on_part: Callable[[Part], None]) -> None:
        """Have every part told that there is, and each one that is added."""
        self._on_part = on_part
        for part in self.parts:
            on_part(part)

    def expect(self, total: int) -> None:
        """So much in all, of which a part begins only when its turn comes."""
        self._expected = total

    @property
    def total(self) -> int:
        return max(self._expected, sum(part.total for part in self.parts))

    @property
    def is_one(self) -> bool:
        """Whether there is one part, and nothing beside it."""
        return len(self.parts) == 1 and self.parts[0].total == self.total

    @property
    def done(self) -> int:
        return min(self.total, sum(part.done for part in self.parts))

    @property
    def left_s(self) -> float | None:
        """As the parts were told it: until the last one ends; None where one does not know."""
        told = [part.left_s for part in self.parts]
        known = [left_s for left_s in told if left_s is not None]
        return max(known, default=None) if len(known) == len(told) else None

    def line(self) -> Sentence | None:
        """For a log; None where nothing is known yet. The rate is that since the line before."""
        done, total = self.done, self.total
        if not total:
            return None
        rate = self._rate(done)
        return _(
            "{what}: {done} of {total} ({percent} %){rate}{left}{doing}",
            what=self.what,
            done=self._spelled(done),
            total=self._spelled(total),
            percent=_percent(done, total),
            rate=_spelled_rate(rate, total - done) if self._is_bytes else "",
            left=self._left(rate, total - done),
            doing=self._doing(),
        )

    @property
    def _is_bytes(self) -> bool:
        return self.unit == BYTES

    def _rate(self, done: int) -> float:
        """Units a second: of bytes lately, as links change; of cells since the beginning."""
        now_s = self._clock()
        if self._is_bytes:
            return self._pace.rate(done, now_s)
        return done / (now_s - self._begun_s) if now_s > self._begun_s else 0.0

    def _left(self, rate: float, left: int) -> str:
        """Nothing is said where nothing is left, or nothing is known."""
        left_s = left / rate if rate else None
        if self.is_left_told:
            left_s = self.left_s
        return _(", {time} left", time=units.duration(left_s)) if left_s and left else ""

    def _spelled(self, number: int) -> str:
        return units.size(number) if self._is_bytes else f"{number:,}"

    def _doing(self) -> str:
        if self.is_one:
            doing = self.parts[0].doing or self.parts[0].name
            return _(", now {what}", what=doing) if doing else ""
        shares = [
            f"{part.name} {_percent(part.done, part.total)} %"
            for part in self.parts
            if part.is_at_work
        ]
        return _("; {parts}", parts=some(shares, _MOST_PARTS)) if shares else ""


def _percent(done: int, total: int) -> int:
    return 100 * min(done, total) // total if total else 100


def _spelled_rate(rate: float, left: int) -> str:
    if left and not rate:
        return _(", no progress lately")
    return _(", {rate}/s", rate=units.size(int(rate)))
