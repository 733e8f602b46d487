"""Looks at what the launcher has started, and ends it where that is another number of ranks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from boxcar.shared.cell import launch
from boxcar.shared.files.attempt_spec import AttemptSpec
from boxcar.shared.paths import ScratchPaths
from onbox.attempt import world
from onbox.attempt.processes import Record
from onbox.attempt.stop import end_soon
from onbox.machine import process

# Before the first look at what the launcher has started: no sooner has it started anything.
FIRST_LOOK_S = 0.5
# While no rank was seen: an interpreter that starts and ends at once is there for as long. Such a
# look takes a twentieth of a core at most.
_UNTIL_SEEN_S = 0.02
_PAUSES = 20


class Watch:
    def __init__(
        self,
        spec: AttemptSpec,
        scratch: ScratchPaths,
        argv: Sequence[str],
        find: Callable[[], list[int]],
        log_fd: int,
    ) -> None:
        """`find` finds what lives of the attempt, and `log_fd` gets the sentence where it ends."""
        self.wrong_ranks: int | None = None
        self._argv, self._ranks = argv, launch.ranks_to_form(spec)
        self._find, self._log_fd = find, log_fd
        self._record = Record(scratch, spec.cell, spec.attempt)
        self._is_open = self._ranks is not None
        # With its start time, each rank that was ever seen.
        self._seen: dict[int, str | None] = {}
        # Of several ranks it is seen how many form, however short they are.
        is_soon = (self._ranks or 1) > 1
        self._first_at = time.monotonic() + (0.0 if is_soon else FIRST_LOOK_S)
        self._next_whole_at = 0.0

    def look(self, launcher: int) -> float:
        """How many seconds the next look may wait."""
        if (left_s := self._first_at - time.monotonic()) > 0:
            return left_s
        if self._is_open and time.monotonic() < self._next_whole_at:
            began = time.process_time()
            self._take(world.formed(launcher, self._argv, is_quick=True))
            return max(_UNTIL_SEEN_S, _PAUSES * (time.process_time() - began))
        pause_s = self._record.look()
        self._next_whole_at = time.monotonic() + pause_s
        if self._ranks is not None:
            self._seen |= {pid: process.start_time(pid) for pid in world.ranks(launcher)}
        if self._is_open:
            self._take(world.formed(launcher, self._argv))
        return _UNTIL_SEEN_S if self._is_open else pause_s

    def found_wrong(self, rc: int) -> dict[str, Any]:
        """Once the launcher has ended: where another number of ranks formed than was asked for,
        both; and how many live on where its code says that all is well.
        """
        found: dict[str, Any] = {}
        if self.wrong_ranks is not None:
            found |= {"ranks_asked": self._ranks, "ranks_formed": self.wrong_ranks}
        if rc == 0 and (living := self._living_ranks()):
            found |= {"ranks_alive": living}
        return found

    def _living_ranks(self) -> int:
        """How many of those that were seen have not ended."""
        starts = self._seen.items()
        return sum(
            started is not None and process.start_time(pid) == started for pid, started in starts
        )

    def _take(self, formed: int | None) -> None:
        if formed is None:
            return
        self._is_open = False
        if formed != self._ranks:
            self.wrong_ranks = formed
            self._end(f"the launcher was asked for {self._ranks} ranks and formed {formed}")

    def _end(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._log_fd, f"boxcar: {text}: this attempt is ended\n".encode())
        end_soon(self._find)
