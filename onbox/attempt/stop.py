"""How an attempt is told to leave: a script gets its whole grace to save, whatever starts it.

The launcher is told, and hands it on or not. Once it has ended, what lives on is told too: at first
only what has no parent in the attempt, since a script whose helpers are ended may fail to save.
Nobody is told twice. Who has not left at the end of the grace is killed, and nobody before.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterable
from types import FrameType

from boxcar.shared.cell.duration import GRACE_S
from boxcar.shared.cell.launch import DEEPSPEED
from onbox.attempt import watch
from onbox.machine import process

_LOOK_EVERY_S = 0.2


class Stop:
    def __init__(
        self,
        find: Callable[[], list[int]],
        launched_by: str = "",
        platform_grace_s: float = GRACE_S,
        limit_s: int | None = None,
    ) -> None:
        """`find` finds all that lives of the attempt; the others are as in AttemptSpec."""
        self.was_told = False
        self.is_over_time = False
        self._find, self._launched_by = find, launched_by
        self._platform_grace_s, self._limit_s = platform_grace_s, limit_s
        self._launcher: int | None = None
        self._told: set[int] = set()
        self._leaves_at = self._ends_at = math.inf
        self._grace_s = GRACE_S
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._hear)

    @property
    def _is_leaving(self) -> bool:
        return self.was_told or self.is_over_time

    def watch(self, launcher: int) -> None:
        """Pass on to this launcher what comes, and what came while it was being started; its time
        runs from now on.
        """
        self._launcher = launcher
        self._leaves_at = time.monotonic() + (self._limit_s or math.inf)
        if self.was_told:
            self._begin()

    def look(self) -> float:
        """Do what is due by the clock; in how many seconds the next look is."""
        now = time.monotonic()
        if not self._is_leaving and now < self._leaves_at:
            return self._leaves_at - now
        if not self._is_leaving:
            self.is_over_time = True
            self._begin()
        self._tell(self._who_is_told())
        if now < self._ends_at:
            return self._ends_at - now
        process.signal_all(self._find(), signal.SIGKILL)
        return _LOOK_EVERY_S

    def launcher_ended(self) -> None:
        """Who asks from now on comes too late; a platform may still shorten what was asked for."""
        self._launcher = None
        if not self._is_leaving:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)

    def end_left(self) -> None:
        """End what the launcher has left."""
        if not self._is_leaving:
            watch.end_soon(self._find)
            return
        while (left := self._find()) and time.monotonic() < self._ends_at:
            self._tell(process.heads(left))
            time.sleep(_LOOK_EVERY_S)
        process.kill_all(self._find)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.was_told = True
        # The agent passes a person's stop on as SIGINT: nothing ends the box then. A platform that
        # gives no time sends no signal either, so that this one is somebody else's.
        if number == signal.SIGTERM and self._platform_grace_s:
            self._grace_s = min(self._grace_s, self._platform_grace_s)
        self._begin()

    def _begin(self) -> None:
        """The grace runs once there is a launcher; a further word can only shorten it."""
        if self._launcher is None and not self._told:
            return
        self._ends_at = min(self._ends_at, time.monotonic() + self._grace_s)
        self._tell(self._who_is_told())

    def _who_is_told(self) -> list[int]:
        launcher = self._launcher
        if launcher is None:
            return []
        if self._launched_by != DEEPSPEED:
            return [launcher]
        # Told to leave, it ends its ranks one after the other: so they are told, and it leaves with
        # their code.
        # Those that it starts only now are told at the next look.
        return watch.ranks(launcher) or ([] if self._told else [launcher])

    def _tell(self, pids: Iterable[int]) -> None:
        for pid in pids:
            if pid not in self._told:
                self._told.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
