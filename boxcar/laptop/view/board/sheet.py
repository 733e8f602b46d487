"""What every part of the board draws with: the rows, the width, and where the person is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from boxcar.laptop.view.board.focus import Focus, progress_of_row
from boxcar.laptop.view.board.terminal_lines import (
    Line,
    cut,
    draw_rows,
    joined,
    mark_chosen,
    styled,
)
from boxcar.laptop.view.looks import BOLD, BUSY, DIM
from boxcar.laptop.view.needs import Need
from boxcar.laptop.view.run_fields import BOXES, CELLS_BELOW_TITLE, NEEDS, Column, Field, R, Table
from boxcar.laptop.view.run_rows import BoxRow, CellRow, Facts, RunRows
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

_BAR = 8  # columns of a cell's progress


def part_text(row: CellRow, facts: Facts) -> str:
    """How far a cell is: `━━━━──── 10/20`; without a bar where nobody knows of how much."""
    told, part = progress_of_row(row)
    if part is None:
        return told
    done = int(part * _BAR)
    return f"{facts.glyphs.full * done}{facts.glyphs.empty * (_BAR - done)} {told}"


def _fields_with_bar(row: CellRow, facts: Facts) -> Sequence[Field]:
    fields = [*CELLS_BELOW_TITLE.fields(row, facts)]
    fields[_EPOCH] = Field(part_text(row, facts), BUSY)
    return fields


# Of a cell that runs the epoch is a bar.
_COLUMNS = CELLS_BELOW_TITLE.columns
_EPOCH = [column.title for column in _COLUMNS].index("epoch")
_WITH_BAR = (*_COLUMNS[:_EPOCH], Column("", keep=5), *_COLUMNS[_EPOCH + 1 :])
AT_WORK = Table(_WITH_BAR, _fields_with_bar)


@dataclass(frozen=True)
class Sheet:
    """The rows of a look, `looked_s` ago, on a terminal of some width. Without a focus nobody is
    there to press a key.
    """

    rows: RunRows
    width: int
    focus: Focus | None
    looked_s: float = 0.0

    @property
    def facts(self) -> Facts:
        return self.rows.facts

    @property
    def mark(self) -> str:
        return self.facts.glyphs.mark

    def said(self, sentence: str) -> str:
        return self.facts.said(sentence)

    def dim(self, text: str) -> Line:
        return cut(styled(text, DIM), self.width, self.mark)

    def key(self, key: str) -> str:
        """What shows the rest: the key, or the command that prints all."""
        return key if self.focus else self.facts.see_all

    def more(self, n: int, key: str) -> Line:
        """That `n` rows had no room."""
        more = _("{n} more: {key}", n=n, key=self.key(key))
        return self.dim(f"{self.mark} {self.said(more)}" if n else "")

    def draw(self, table: Table[R], rows: Sequence[R]) -> list[Line]:
        """A line for each."""
        drawn = draw_rows(table, rows, self.facts, self.width)
        return self._with_cursor([line for [line] in drawn], rows)

    def draw_needs(self, rows: Sequence[Need], most_lines: int = 1) -> list[Line]:
        """Cells, boxes and what is only worth knowing each have columns of their own: long names of
        the ones must not cost the words of the others their room.
        """
        lines: list[Line] = []
        for _kind, group in groupby(rows, key=lambda row: (bool(row.where), row.is_quiet)):
            those = list(group)
            drawn = draw_rows(NEEDS, those, self.facts, self.width, most_lines=most_lines)
            for row, own in zip(those, drawn, strict=True):
                lines += self._with_cursor(own, [row] * len(own))
        return lines

    def draw_boxes(self, rows: Sequence[BoxRow], *, has_cursor: bool = False) -> list[Line]:
        """Below a line of titles."""
        aged = [replace(row, looked_s=self.looked_s) for row in rows]
        drawn = draw_rows(BOXES, aged, self.facts, self.width, has_titles=True)
        head, *lines = [line for [line] in drawn]
        return [head, *(self._with_cursor(lines, rows) if has_cursor else lines)]

    def _with_cursor(self, lines: list[Line], rows: Sequence[Any]) -> list[Line]:
        if self.focus is None:
            return lines
        for at, row in enumerate(rows):
            if row.cell in self.focus.marked:
                lines[at] = joined(lines[at][:1], styled("*", BOLD), lines[at][2:])
            if row.cell == self.focus.chosen and row.cell:
                mark_chosen(lines[at], self.width)
            lines[at].of = row.cell
        return lines


def title(sheet: Sheet, name: str, right: str = "") -> Line:
    """`── needs attention ─────`."""
    return rule_line(sheet, styled(sheet.said(name), BOLD), right)


def rule_line(sheet: Sheet, words: Line, right: str = "") -> Line:
    rule, room = sheet.facts.glyphs.rule, sheet.width
    left = joined(styled(f"{rule}{rule} ", DIM), words, styled(" "))
    end = styled(f" {sheet.said(right)} {rule}" if right else "", DIM)
    rest = rule * (room - left.cell_len - end.cell_len)
    return cut(joined(left, styled(rest, DIM), end if rest else styled("")), room, sheet.mark)
