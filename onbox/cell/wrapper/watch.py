"""Looks at what the launcher has started, and ends it where that is another number of ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from boxcar.shared.paths import ScratchPaths
from onbox.cell import world
from onbox.cell.processes import Record
from onbox.cell.wrapper.places import Scratch
from onbox.machine import process

# While no rank was seen: an interpreter that starts and ends at once is there for as long. Such a
# look takes a twentieth of a core at most.
_UNTIL_SEEN_S = 0.02
_PAUSES = 20


class Watch:
    def __init__(
        self,
        scratch: Scratch,
        cell: str,
        number: int,
        *,
        argv: Sequence[str],
        ranks: int | None,
        end: Callable[[str], None],
    ) -> None:
        """`end` ends the attempt, and says the sentence in its log."""
        self.wrong_ranks: int | None = None
        self._argv, self._ranks, self._end = argv, ranks, end
        self._record = Record(ScratchPaths(Path(scratch.data_dir), scratch.run), cell, number)
        self._is_open = ranks is not None
        # With its start time, each rank that was ever seen.
        self._seen: dict[int, str | None] = {}
        self._next_whole_at = 0.0

    def look(self, launcher: int) -> float:
        """How many seconds the next look may wait."""
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

    def living_ranks(self) -> int:
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
