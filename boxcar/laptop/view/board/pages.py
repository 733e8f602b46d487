"""What lies over the list, over the whole height: a cell's log, its story and why it failed; two
cells beside each other; the keys. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.run.state_words import state_sentence
from boxcar.laptop.view.board.focus import (
    BESIDE,
    HELP,
    LOG,
    PAGES,
    Focus,
    Sight,
    numbers_of_row,
)
from boxcar.laptop.view.board.sheet import Sheet, part_text, rule_line, title
from boxcar.laptop.view.board.terminal_lines import (
    Line,
    cut,
    fit_rows,
    joined,
    mark_found,
    span,
    sparkline,
    styled,
    wrapped,
)
from boxcar.laptop.view.looks import BOLD, BUSY, DIM, Bars, state_glyph
from boxcar.laptop.view.run_fields import Column
from boxcar.laptop.view.run_rows import UNDER_WAY, CellRow
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark

_MOST_FACTS = 4
_MOST_PARTS = 20  # lines of the screen for one of a log
_NEAR = 200  # lines from the first one that is here


@dataclass(frozen=True)
class OpenedCell:
    """`facts`, `story` and `why` are sentences. `log` and `why` are None as long as nobody has read
    them; `first` is the number of the log's first line here, and `has_more` whether there are some
    before it.
    """

    cell: str
    state: str
    facts: Sequence[str] = ()
    story: Sequence[str] = ()
    why: Sequence[str] | None = None
    log: Sequence[str] | None = None
    first: int = 0
    has_more: bool = False

    def text(self, page: str) -> Sequence[str] | None:
        return dict(zip(PAGES, (self.log, self.story, self.why), strict=True))[page]

    def wants_more(self, top: int | None) -> bool:
        """Whether a person who sees the line `top` of the log is near the first one here."""
        return self.has_more and top is not None and top < self.first + _NEAR


def sight_of(lines: Sequence[Line], focus: Focus, opened: OpenedCell | None) -> Sight:
    """What the keys have to know of what was drawn."""
    if focus.page in PAGES and opened:
        return Sight(lines, opened.text(focus.page) or (), opened.first if focus.page == LOG else 0)
    return Sight(lines, [keys for keys, _what in _KEYS])


def page_lines(sheet: Sheet, focus: Focus, opened: OpenedCell | None, room: int) -> list[Line]:
    if focus.page == HELP:
        return [title(sheet, _("keys")), *_window(sheet, _keys(sheet), 0, focus, room - 1)]
    if focus.page == BESIDE:
        return _beside(sheet, focus)[:room]
    return _opened_lines(sheet, opened, focus, room)[:room] if opened else []


def _window(sheet: Sheet, text: Sequence[str], first: int, focus: Focus, room: int) -> list[Line]:
    """As much of it as has room, from where the person is, else from where the page begins."""
    at = len(text) if focus.is_following else 0
    at = max(0, min(len(text), at if focus.top is None else focus.top - first))
    below = _wrapped(sheet, text, range(at, len(text)), room)
    if len(below) < room:  # to the end
        above = _wrapped(sheet, text, range(at - 1, -1, -1), room - len(below))
        below = [*above[::-1], *below]
    lines = []
    for number, part in below:
        line = span(part)
        mark_found(line, focus.search)
        line.of = first + number
        lines.append(line)
    return lines


def _wrapped(sheet: Sheet, text: Sequence[str], places: range, room: int) -> list[tuple[int, str]]:
    """The lines at these places, each broken where it is wide, until the room is full."""
    found: list[tuple[int, str]] = []
    for at in places:
        if len(found) >= room:
            break
        whole = span(text[at][: _MOST_PARTS * sheet.width]).plain
        parts = wrapped(whole, sheet.width, _MOST_PARTS, sheet.mark)
        found += [(at, part) for part in parts[:: places.step]]
    return found[: max(0, room)]


# One cell: how it stands, and one of its pages.


_TABS = (mark("log"), mark("what happened"), mark("why"))


def _opened_lines(sheet: Sheet, opened: OpenedCell, focus: Focus, room: int) -> list[Line]:
    head = _head_of_cell(sheet, opened)[: max(1, room // 2)]
    text, first = opened.text(focus.page), opened.first if focus.page == LOG else 0
    body = _window(sheet, text or (), first, focus, room - len(head) - 1)
    where = ""
    if not text:
        nothing = _("no log yet") if focus.page == LOG else _("nothing here")
        body = [sheet.dim(sheet.said(_("loading…") if text is None else nothing))]
    else:
        where = _where(opened, focus, first + len(text), sight_of(body, focus, opened).numbers)
    return [*head, rule_line(sheet, _tabs(sheet, focus), where), *body]


def _tabs(sheet: Sheet, focus: Focus) -> Line:
    parts: list[Line] = []
    for number, (page, name) in enumerate(zip(PAGES, _TABS, strict=True), 1):
        look = BOLD if page == focus.page else DIM
        parts += [
            styled("  " if parts else ""),
            styled(f"{number} {sheet.said(Sentence(name))}", look),
        ]
    return joined(*parts)


def _where(opened: OpenedCell, focus: Focus, end: int, numbers: Sequence[int]) -> str:
    """Whether the end is seen, and what comes."""
    if focus.top is None and focus.is_following:
        is_growing = focus.page == LOG and opened.state in UNDER_WAY
        return _("following") if is_growing else _("the end")
    if focus.page == LOG and opened.has_more and numbers[:1] == [opened.first]:
        return _("loading…")
    below = end - numbers[-1] - 1 if numbers else 0
    return _("{n} {n:line|lines} below: G", n=below) if below else _("the end")


def _head_of_cell(sheet: Sheet, opened: OpenedCell) -> list[Line]:
    sign, look = state_glyph(opened.state, sheet.facts.glyphs)
    state = sheet.said(state_sentence(opened.state))
    name = joined(styled(f"{sign} ", look), span(opened.cell, BOLD), span(f"  {state}", look))
    for row in sheet.rows.under_way:
        if row.cell == opened.cell:
            name = joined(name, styled(f"  {part_text(row, sheet.facts)}", BUSY))
    facts = [
        span(f"  {line}")
        for fact in opened.facts[:_MOST_FACTS]
        for line in wrapped(fact, sheet.width - 2, 3, sheet.mark)
    ]
    return [cut(name, sheet.width, sheet.mark), *facts]


# Two cells beside each other, while they train: how far each is, its numbers, and their curves on
# one scale.


_SIDE_BY_SIDE = (
    Column("", keep=9, least=6),
    *(Column("", keep=8 - side, least=12, is_name=True) for side in range(2)),
)


def _beside(sheet: Sheet, focus: Focus) -> list[Line]:
    found = {row.cell: row for row in sheet.rows.all_cells if row.cell in focus.marked}
    both = [found[cell] for cell in focus.marked if cell in found]
    names = dict.fromkeys(name for row in both for name in numbers_of_row(row))
    bars = max(4, (sheet.width - 40) // 2 - 10)
    told = {
        mark("cell"): [span(row.cell, BOLD) for row in both],
        mark("state"): [_state(sheet, row) for row in both],
        mark("progress"): [styled(part_text(row, sheet.facts), BUSY) for row in both],
        mark("time"): [span(units.duration(row.view.seconds)) for row in both],
        mark("box"): [span(row.view.box) for row in both],
    }
    table = [
        [styled(sheet.said(Sentence(name)), DIM), *lines]
        for name, lines in told.items()
        if any(lines)
    ]
    table += [[span(name, DIM), *_numbers(sheet, name, both, bars)] for name in names]
    lines = fit_rows(_SIDE_BY_SIDE[: len(both) + 1], table, sheet.width, sheet.mark)
    return [title(sheet, _("two cells beside each other")), *(line for [line] in lines)]


def _state(sheet: Sheet, row: CellRow) -> Line:
    sign, look = state_glyph(row.view.word, sheet.facts.glyphs)
    return span(f"{sign} {sheet.said(state_sentence(row.counted_as))}", look)


def _numbers(sheet: Sheet, name: str, both: Sequence[CellRow], bars: int) -> list[Line]:
    curves = [row.curve_of(name) for row in both]
    seen = [value for curve in curves for value in curve]
    low, high = min(seen, default=None), max(seen, default=None)
    lines = []
    for row, curve in zip(both, curves, strict=True):
        value: Any = numbers_of_row(row).get(name)
        number = "-" if value is None else units.four_digits(value)
        drawn = sparkline(Bars(curve, low=low, high=high), sheet.facts.glyphs.levels, bars)
        lines.append(joined(styled(f"{number:<10}  "), styled(drawn, BUSY)))
    return lines


# The keys.


_KEYS = (
    ("j k, arrows", mark("move; in a cell they scroll, and so does the wheel")),
    ("g G, Home End", mark("the first, the last; at the end of a log you follow it")),
    ("PgUp PgDn", mark("a page; Ctrl-B and Ctrl-F, too")),
    ("Enter, 1 2 3", mark("open the cell: its log, what happened, why")),
    ("Tab", mark("the next of these three")),
    ("/", mark("show the cells of a name; in a cell: search")),
    ("n N", mark("the next match, the one before")),
    ("f r d u b", mark("what needs attention, is running, done, queued; the boxes")),
    ("s S", mark("sort by the next column, turn it around")),
    ("Space, =", mark("mark two cells, see them beside each other")),
    ("m", mark("mouse on or off; off leaves the selection to the terminal")),
    ("Ctrl-L", mark("draw the screen again")),
    ("Esc", mark("back; forgets the filter, the search, the marks")),
    ("q, Ctrl-C", mark("close what is open, else leave; the run continues")),
)


def _keys(sheet: Sheet) -> list[str]:
    return [f"{keys:<15}{sheet.said(Sentence(what))}" for keys, what in _KEYS]
