"""A snapshot on a terminal of some width, and where the person is on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxcar.laptop.board import box_rows, cell_rows, needs_you
from boxcar.laptop.board.box_rows import BoxRow
from boxcar.laptop.board.cell_rows import CellRow
from boxcar.laptop.board.focus import Focus
from boxcar.laptop.board.lines.line import DIM, Line, Span, mark_chosen, cut
from boxcar.laptop.board.lines.words import word
from boxcar.laptop.board.needs_you import Need
from boxcar.laptop.board.snapshot import Snapshot
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Sheet:
    """Without a focus nobody is there to press a key."""

    snapshot: Snapshot
    width: int
    focus: Focus | None

    def word(self, name: str, /, **fields: Any) -> str:
        return word(name, self.snapshot.facts.language, **fields)

    def dim(self, text: str) -> Line:
        return cut((Span(text, DIM),), self.width, self.snapshot.facts.glyphs.mark)

    def key(self, key: str) -> str:
        """What shows the rest: the key, or the command that prints all."""
        return key if self.focus else self.snapshot.facts.see_all

    def more(self, n: int, key: str) -> Line:
        """That `n` rows had no room."""
        if not n:
            return ()
        mark = self.snapshot.facts.glyphs.mark
        return self.dim(f"{mark} {self.word('more', n=n, key=self.key(key))}")

    def needs(self, rows: Sequence[Need]) -> list[Line]:
        facts = self.snapshot.facts
        lines = needs_you.drawn(rows, self.width, facts.glyphs)
        return self._with_cursor(lines, [row.cell for row in rows])

    def cells(self, rows: Sequence[CellRow]) -> list[Line]:
        facts = self.snapshot.facts
        lines = cell_rows.drawn(rows, self.width, facts.language, facts.glyphs)
        return self._with_cursor(lines, [row.cell for row in rows])

    def boxes(self, rows: Sequence[BoxRow], *, has_cursor: bool = False) -> list[Line]:
        """Below a line of titles."""
        facts, looked_s = self.snapshot.facts, self.snapshot.looked_s
        lines = box_rows.drawn(rows, self.width, facts.language, facts.glyphs, looked_s)
        if not has_cursor:
            return lines
        return [lines[0], *self._with_cursor(lines[1:], [row.cell for row in rows])]

    def _with_cursor(self, lines: list[Line], cells: Sequence[str | None]) -> list[Line]:
        if self.focus is None or not self.focus.chosen:
            return lines
        return [
            mark_chosen(line, self.width) if cell == self.focus.chosen else line
            for line, cell in zip(lines, cells, strict=True)
        ]
