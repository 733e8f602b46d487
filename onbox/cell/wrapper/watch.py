"""Looks at what the launcher has started, and ends it where that is another number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from boxcar.shared.paths import ScratchPaths
from onbox.cell import world
from onbox.cell.processes import Record
from onbox.cell.wrapper.places import Scratch


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

    def look(self, launcher: int) -> float:
        """How many seconds the next look may wait."""
        pause_s = self._record.look()
        if self._is_open and (formed := world.formed(launcher, self._argv)) is not None:
            self._is_open = False
            if formed != self._ranks:
                self.wrong_ranks = formed
                self._end(f"the launcher was asked for {self._ranks} ranks and formed {formed}")
        return pause_s
