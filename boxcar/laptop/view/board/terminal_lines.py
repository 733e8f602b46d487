"""A line of the board, as rich's Text in the looks of `looks`; rows as lines, and groups of rows
that share the height of a terminal.

Widths are those of a terminal: a Chinese letter is two columns wide, a combining mark none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from rich.text import Span, Text

from boxcar.laptop.common.text_layout import GAP, fit_columns, fold_text, plain
from boxcar.laptop.view.looks import BAD, BOLD, BUSY, DIM, GOOD, WARN, Bars, Glyphs
from boxcar.laptop.view.run_fields import Column, Field, R, Table
from boxcar.laptop.view.run_rows import Facts
from boxcar.shared.record import dataclass
from boxcar.shared.text_width import short_name

# The terminal's own colours: each theme has made them readable on its ground.
_STYLES = {
    GOOD: Style(color="green"),
    BUSY: Style(color="cyan"),
    BAD: Style(color="red", bold=True),
    WARN: Style(color="yellow"),
    BOLD: Style(bold=True),
    DIM: Style(dim=True),
}
_CHOSEN = Style(reverse=True)
# Of a row of bars: by time as many as there is room for, else so many.
_LEAST_BARS, _MOST_BARS, _BARS = 10, 30, 12


class Line(Text):
    """`of` is what stands in it: a cell's name, or the number of a line of text."""

    of: str | int | None = None


_NOTHING = Line()


def paint_lines(lines: Sequence[Line]) -> Text:
    """As rich draws them, without a line end after the last."""
    return Text("\n", end="", no_wrap=True, overflow="crop").join(lines)


def ansi(line: Line, console: Console) -> str:
    """As a terminal of 16 colours takes it."""
    return "".join(
        part.style.render(part.text, color_system=ColorSystem.STANDARD) if part.style else part.text
        for part in joined(line).render(console)
    )


def styled(words: str, look: str = "") -> Line:
    """`look` is one of the words of `looks`."""
    return Line(words, _STYLES.get(look, ""), no_wrap=True, overflow="crop", end="")


def span(words: str, look: str = "") -> Line:
    """Of other people's words too: nothing in it can drive the terminal or end the line."""
    return styled(plain(words).replace("\n", " ").replace("\t", " "), look)


def joined(*parts: Text) -> Line:
    line = Line(no_wrap=True, overflow="crop", end="")
    for part in parts:
        line.append_text(part)
    return line


def cut(line: Line, room: int, mark: str) -> Line:
    """At most `room` columns of it; `mark` stands where something was cut off."""
    if line.cell_len <= room:
        return line
    left = room - cell_len(mark)
    if left < 0:
        return styled("")
    kept = joined(line)
    kept.truncate(left)
    kept.rstrip()
    kept.append(mark, kept.spans[-1].style if kept.spans else None)
    return kept


def mark_chosen(line: Line, room: int) -> Line:
    """The line under the cursor, to the edge."""
    line.pad_right(max(0, room - line.cell_len))
    line.stylize(_CHOSEN)
    return line


def mark_found(line: Line, text: str) -> None:
    """Where the text stands in it."""
    if text:
        line.highlight_regex(re.compile(re.escape(text), re.IGNORECASE), _CHOSEN)


def spread(left: Line, right: Line, room: int, mark: str) -> Line:
    """One at each edge; where both have no room, only what stands at the left."""
    gap = room - left.cell_len - right.cell_len
    if gap < 2 or not right:
        return cut(left, room, mark)
    return joined(left, styled(" " * gap), right)


def wrapped(words: str, room: int, most: int, mark: str) -> list[str]:
    """The text on at most `most` lines; a command that is wider than a line is broken as well."""
    lines = fold_text(words, room)
    if len(lines) > most:
        rest = cut(styled(" ".join(lines[most - 1 :])), room, mark)
        lines = [*lines[: most - 1], rest.plain]
    return lines


# Rows as lines: columns share the width of a terminal, some shrink, the others drop.


def draw_rows(
    table: Table[R],
    rows: Sequence[R],
    facts: Facts,
    room: int,
    *,
    has_titles: bool = False,
    most_lines: int = 1,
) -> list[list[Line]]:
    """The lines of each row, of at most `room` columns: one, or up to `most_lines` where the words
    of its last column need them. The titles come before the first row.
    """
    shown = [at for at, column in enumerate(table.columns) if column.keep]
    columns = [table.columns[at] for at in shown]
    fields = [table.fields(row, facts) for row in rows]
    bars = max(_LEAST_BARS, min(_MOST_BARS, _LEAST_BARS + (room - 80) // 4))
    lines = [[_line_of(one[at], facts.glyphs, bars) for at in shown] for one in fields]
    titles = [styled(facts.said(column.title), DIM) for column in columns] if has_titles else []
    return fit_rows(columns, lines, room, facts.glyphs.mark, titles, most_lines=most_lines)


def _line_of(field: Field, glyphs: Glyphs, bars: int) -> Line:
    text = field.text if field.bars is None else sparkline(field.bars, glyphs.levels, bars)
    return span(text, field.look) if text else _NOTHING


def sparkline(bars: Bars, levels: str, most: int) -> str:
    """A row of small bars; '' of fewer than two: what nobody has seen must not look like a flat
    line.
    """
    heights = bars.heights(most if bars.span_s else min(most, _BARS))
    known = [value for value in heights if value is not None]
    if len(known) < 2:
        return ""
    bottom = min(known) if bars.low is None else bars.low
    top = max(known) if bars.high is None else bars.high

    def sign(value: float) -> str:
        part = (value - bottom) / (top - bottom) if top > bottom else 0.0
        return levels[min(len(levels) - 1, max(0, int(part * len(levels))))]

    return "".join(" " if value is None else sign(value) for value in heights)


def fit_rows(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Line]],
    room: int,
    mark: str,
    titles: Sequence[Line] = (),
    *,
    most_lines: int = 1,
) -> list[list[Line]]:
    full = [titles, *rows] if titles else [*rows]
    places = range(len(columns))
    is_said = [any(row[at] for row in rows) for at in places]
    natural = [max((row[at].cell_len for row in full), default=0) * is_said[at] for at in places]
    least = [
        one if column.least is None else min(one, column.least)
        for column, one in zip(columns, natural, strict=True)
    ]
    to_go = sorted(places, key=lambda at: columns[at].keep)
    widths = fit_columns(natural, least, to_go, room)
    if empty := [at for at in widths if _has_room_for_none(columns[at], rows, at, widths[at])]:
        widths = fit_columns(
            [0 if at in empty else natural[at] for at in places], least, to_go, room
        )
    return [_drawn(columns, row, widths, mark, most_lines) for row in full]


def _has_room_for_none(column: Column, rows: Sequence[Sequence[Line]], at: int, room: int) -> bool:
    """Whether no row has a number that is as narrow as that: its room is better given to others."""
    return column.are_numbers and not any(_fit(column, row[at], room, "") for row in rows)


def _drawn(
    columns: Sequence[Column],
    row: Sequence[Line],
    widths: dict[int, int],
    mark: str,
    most_lines: int,
) -> list[Line]:
    text, spans, more = "", list[Span](), list[Line]()
    for at, room in widths.items():
        text += " " * GAP if text else ""
        fitted = _fit(columns[at], row[at], room, mark)
        if at == len(columns) - 1 and most_lines > 1 and row[at]:
            indent, style = styled(" " * cell_len(text)), row[at].style
            first, *rest = wrapped(row[at].plain, room, most_lines, mark)
            fitted = Line(first, style)
            more = [joined(indent, Line(part, style)) for part in rest]
        blanks = " " * (room - fitted.cell_len)
        text += blanks if columns[at].is_right else ""
        start = len(text)
        text += fitted.plain
        spans.append(Span(start, len(text), fitted.style))
        spans += [span.move(start) for span in fitted.spans]
        text += "" if columns[at].is_right else blanks
    return [Line(text, spans=spans, no_wrap=True, overflow="crop", end=""), *more]


def _fit(column: Column, line: Line, room: int, mark: str) -> Line:
    if line.cell_len <= room:
        return line
    if column.is_name:
        return Line(short_name(line.plain, room, mark), line.style)
    if column.are_numbers:
        numbers = line.plain.split(", ")
        while numbers and cell_len(", ".join(numbers)) > room:
            numbers.pop()
        return Line(", ".join(numbers), line.style)
    return cut(line, room, mark)


# How far something is, as a bar.


def progress_bar(done: int, failed: int, total: int, room: int, glyphs: Glyphs) -> Line:
    """What failed is seen however little it is, and the end is reached with the last one only."""
    bad = max(failed * room // total, failed > 0)
    good = max(0, (done + failed) * room // total - bad)
    return joined(
        styled(glyphs.full * good, GOOD),
        styled(glyphs.broken * bad, BAD),
        styled(glyphs.empty * (room - good - bad), DIM),
    )


# Groups of rows that share the height of a terminal. Pure.


T = TypeVar("T")


@dataclass(frozen=True)
class Group(Generic[T]):
    """`top` stands above the rows, whatever else has room. `draw` makes lines of rows, with one
    more for a head where `has_head`. `fold` makes the line for those that have no room; it is asked
    for 0 too, and may have something to say. `share` is how many lines the group gets at each turn.
    The row at `chosen` is among those that are shown.
    """

    top: tuple[Line, ...]
    rows: Sequence[T]
    draw: Callable[[Sequence[T]], list[Line]]
    fold: Callable[[int], Line]
    share: int
    has_head: bool = False
    chosen: int = 0

    @property
    def wanted(self) -> int:
        """The lines that it would fill."""
        return self._above + len(self.rows) + bool(self.fold(0))

    @property
    def _above(self) -> int:
        return len(self.top) + (self.has_head and bool(self.rows))

    def filled(self, room: int) -> int:
        """How many lines `lines` makes."""
        shown, fold = self._fitted(room)
        return (self._above + shown if shown else 0) + bool(fold)

    def lines(self, room: int) -> list[Line]:
        """At most `room` lines, of which one says how many rows are left out."""
        shown, fold = self._fitted(room)
        last = [fold] if fold else []
        if not shown:
            return last
        start = max(0, min(self.chosen - shown + 1, len(self.rows) - shown))
        return [*self.top, *self.draw(self.rows[start : start + shown]), *last]

    def _fitted(self, room: int) -> tuple[int, Line]:
        """How many rows have room, and the line for the others."""
        if room <= 0:
            return 0, _NOTHING
        shown = len(self.rows)
        if self.wanted > room:
            shown = max(0, room - self._above - 1)
        return shown, self.fold(len(self.rows) - shown)


def shares(groups: Sequence[Group[T]], room: int) -> list[int]:
    """The lines of each group. The first one gets up to half of them at once; of the others each
    gets one, and then at each turn its share of what is left.
    """
    wanted = [group.wanted for group in groups]
    given = [0] * len(groups)
    for at, want in enumerate(wanted):
        given[at] = min(1 if at else max(1, room // 2), want, room - sum(given))
    while (left := room - sum(given)) > 0 and given != wanted:
        for at, group in enumerate(groups):
            more = min(group.share, wanted[at] - given[at], left)
            given[at] += more
            left -= more
    # What a group cannot fill, because a title alone says nothing, goes to those before it.
    filled = [group.filled(lines) for group, lines in zip(groups, given, strict=True)]
    left = sum(given) - sum(filled)
    for at, lines in enumerate(filled):
        more = min(left, wanted[at] - lines) if lines > 1 else 0
        filled[at] += more
        left -= more
    return filled
