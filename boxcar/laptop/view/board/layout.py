"""The board as lines: what stands where, and what gives way where the terminal is small. Pure.

The head and the counts stand at the top, the next command and the keys at the bottom, always. In
between each group gets lines in turn, those that need a person first; what has no room is a line
that says how many, and which key shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from boxcar.laptop.common import units
from boxcar.laptop.view.board import box_rows, cell_rows, needs_you
from boxcar.laptop.view.board.box_rows import BoxRow
from boxcar.laptop.view.board.cell_rows import CellRow
from boxcar.laptop.view.board.needs_you import Need
from boxcar.laptop.view.board.snapshot import Snapshot
from boxcar.laptop.view.board.terminal_lines import (
    ALL,
    BOLD,
    DIM,
    Group,
    Line,
    Span,
    cut,
    mark_chosen,
    shares,
    span,
    spread,
    state_glyph,
    stripped,
    text,
    width,
    word,
    wrapped,
)
from boxcar.shared.record import dataclass

# Where the person is on the board: which list is open, which row is chosen, what is typed.


OVERVIEW, FAILED, RUNNING, DONE = "overview", "failed", "running", "done"
QUEUED, BOXES = "queued", "boxes"
LOG, HISTORY = "log", "history"


@dataclass(frozen=True)
class Focus:
    """`chosen` is a cell's name. `opened` is the cell whose page is shown, `page` which part of it,
    `back` how many lines before its end. `filter` narrows to names that contain it.
    """

    shown: str = OVERVIEW
    chosen: str = ""
    filter: str = ""
    is_typing: bool = False
    opened: str = ""
    page: str = LOG
    back: int = 0
    has_left: bool = False


AT_START = Focus()


def rows_in_reach(snapshot: Snapshot, focus: Focus) -> list[str]:
    """The cells between which the arrows move, in the order of the screen."""
    cells = [need.cell for need in snapshot.needs if need.cell]
    busy = [row.cell for row in snapshot.under_way]
    done = [row.cell for row in snapshot.done]
    queued = [row.cell for row in snapshot.queued]
    if focus.filter:
        wanted = focus.filter.casefold()
        failed = [row.cell for row in snapshot.failed]
        found = (*failed, *busy, *done, *queued)
        return list(dict.fromkeys(name for name in found if wanted in name.casefold()))
    lists = {FAILED: cells, RUNNING: busy, DONE: done, QUEUED: queued}
    shown = [need.cell for need in snapshot.short_needs if need.cell]
    lists[BOXES] = [row.cell for row in snapshot.boxes if row.cell]
    return list(dict.fromkeys(lists.get(focus.shown, (*shown, *busy, *done))))


def move_focus(snapshot: Snapshot, focus: Focus, by: int) -> Focus:
    """The cursor so many rows down. It comes in at the edge, and stops at both."""
    names = rows_in_reach(snapshot, focus)
    if not names:
        return replace(focus, chosen="")
    before = -1 if by > 0 else len(names)
    at = (names.index(focus.chosen) if focus.chosen in names else before) + by
    return replace(focus, chosen=names[min(len(names) - 1, max(0, at))])


def open_cell(snapshot: Snapshot, focus: Focus, page: str) -> Focus:
    """The page of the chosen cell, else of the first one."""
    names = rows_in_reach(snapshot, focus)
    cell = focus.chosen if focus.chosen in names else next(iter(names), "")
    return replace(focus, opened=cell, chosen=cell, page=page, back=0) if cell else focus


# A snapshot on a terminal of some width, and where the person is on it.


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


# What always stands on the board: the head and the counts above, the next command below. Pure.


_MOST_NEXT, _SMALL = 3, 12  # lines of the next command, and of a terminal that has no room for them


def head(sheet: Sheet) -> list[Line]:
    """The run, and how many cells are in which state."""
    snapshot, facts, room = sheet.snapshot, sheet.snapshot.facts, sheet.width
    age = sheet.word("looked", age=units.about(snapshot.looked_s))
    boxes = sheet.word("boxes", n=len(snapshot.boxes))
    between = f" {facts.glyphs.between} "
    # The first that fits: how old all of it is says more than the time of the day.
    words = [facts.profile, boxes, snapshot.clock, age]
    choices = [words, [facts.profile, boxes, age], [boxes, age], [age], []]
    money: Line = (Span(snapshot.money, BOLD),) if snapshot.money else ()
    left: Line = ()
    for chosen in choices:
        left = (span(snapshot.run, BOLD), *(Span(f"{between}{one}") for one in chosen))
        if width(left) + (width(money) + 2 if money else 0) <= room:
            break
    return [spread(left, money, room, facts.glyphs.mark), _counts(sheet)]


def _counts(sheet: Sheet) -> Line:
    snapshot, room, glyphs = sheet.snapshot, sheet.width, sheet.snapshot.facts.glyphs
    total: Line = (Span(f"{sheet.word('cells')} {snapshot.cells}", BOLD),)
    left_s = snapshot.left_s
    left = (Span(sheet.word("left", time=units.about(left_s))),) if left_s else ()
    full, short = total, total
    for state, number in snapshot.counts:
        sign, look = state_glyph("synced" if state == "settling" else state, glyphs)
        full = (*full, Span("   "), Span(f"{sign} {number} {sheet.word(state)}", look))
        short = (*short, Span(" "), Span(f"{sign}{number}", look))
    fits = width(full) <= room
    return spread(full if fits else short, left, room, glyphs.mark)


def title(sheet: Sheet, name: str) -> Line:
    """`── needs you ─────`."""
    rule, room = sheet.snapshot.facts.glyphs.rule, sheet.width
    line = (Span(f"{rule}{rule} ", DIM), Span(name, BOLD), Span(" ", DIM))
    rest = Span(rule * max(0, room - width(line)), DIM)
    return cut((*line, rest), room, sheet.snapshot.facts.glyphs.mark)


def foot(sheet: Sheet, height: int | None) -> list[Line]:
    """The next command with its reason, and the keys."""
    lines, room = _next(sheet, height), sheet.width
    if sheet.focus is None:
        return lines
    keys = _keys(sheet, sheet.focus)
    if len(lines) == 1 and width(lines[0]) + width(keys) + 2 <= room:
        return [spread(lines[0], keys, room, sheet.snapshot.facts.glyphs.mark)]
    return [*lines, keys]


def _next(sheet: Sheet, height: int | None) -> list[Line]:
    facts, room = sheet.snapshot.facts, sheet.width
    because = facts.because
    most = _MOST_NEXT if height is None or height > _SMALL else 2
    if not facts.next:
        return [(span(one, BOLD),) for one in wrapped(because, room, most, facts.glyphs.mark)]
    command = sheet.word("next", command=facts.next)
    said = sheet.word("why", command=command, because=because) if because else command
    lines = wrapped(said, room, most, facts.glyphs.mark)
    left = len(command)
    drawn: list[Line] = []
    for line in lines:
        bold, rest = line[: max(0, left)], line[max(0, left) :]
        drawn.append(tuple(one for one in (span(bold, BOLD), span(rest)) if one.text))
        left -= len(line) + 1
    return drawn


def _keys(sheet: Sheet, focus: Focus) -> Line:
    if focus.is_typing:
        typed = sheet.word("filter", text=f"{focus.filter}_")
        return cut((span(typed, BOLD),), sheet.width, sheet.snapshot.facts.glyphs.mark)
    is_overview = focus.shown == OVERVIEW and not focus.filter
    name = "keys_in_cell" if focus.opened else "keys" if is_overview else "keys_in_list"
    for key in (name, "keys_short"):
        line = (Span(sheet.word(key), DIM),)
        if width(line) <= sheet.width:
            return line
    return ()


def plain_lines(lines: list[Line]) -> list[str]:
    """Without looks and without blanks at the ends."""
    return [text(line).rstrip() for line in lines]


# One list of the board over the whole height: all that failed, is done, waits, or has a name.


R = TypeVar("R", bound=Need | CellRow | BoxRow)


def list_lines(sheet: Sheet, focus: Focus, room: int) -> list[Line]:
    """The title, and as many rows around the cursor as there is room for."""
    snapshot = sheet.snapshot
    if focus.filter:
        found = _found(snapshot, focus.filter.casefold())
        name = sheet.word("found_title", text=focus.filter, n=len(found))
        return _list(sheet, name, found, sheet.cells, room=room)
    if focus.shown == FAILED:
        name = sheet.word("failed_title", n=len(snapshot.needs))
        return _list(sheet, name, snapshot.needs, sheet.needs, room=room)
    if focus.shown == BOXES:
        name = sheet.word("boxes_title", n=len(snapshot.boxes))
        rows = snapshot.boxes
        return _list(
            sheet, name, rows, lambda some: sheet.boxes(some, has_cursor=True), room=room, heads=1
        )
    cells = {DONE: snapshot.done, RUNNING: snapshot.under_way}.get(focus.shown, snapshot.queued)
    name = sheet.word(f"{focus.shown}_title", n=len(cells))
    return _list(sheet, name, cells, sheet.cells, room=room)


def _found(snapshot: Snapshot, wanted: str) -> list[CellRow]:
    """The cells whose name contains it, in whatever state."""
    rows = (*snapshot.failed, *snapshot.under_way, *snapshot.done, *snapshot.queued)
    return [row for row in rows if wanted in row.cell.casefold()]


def _list(
    sheet: Sheet,
    name: str,
    rows: Sequence[R],
    draw: Callable[[Sequence[R]], list[Line]],
    *,
    room: int,
    heads: int = 0,
) -> list[Line]:
    start, end = _window([row.cell for row in rows], sheet.focus, room - 1 - heads)
    between = f" {sheet.snapshot.facts.glyphs.between} "
    told: list[str] = [sheet.word("more_above", n=start)] if start else []
    told += [sheet.word("more_below", n=len(rows) - end)] if end < len(rows) else []
    drawn: list[Line] = draw(rows[start:end]) if rows[start:end] else [_nothing(sheet)]
    return [title(sheet, between.join([name, *told])), *drawn][: max(0, room)]


def _nothing(sheet: Sheet) -> Line:
    return sheet.dim(sheet.word("nothing"))


def _window(cells: Sequence[str | None], focus: Focus | None, room: int) -> tuple[int, int]:
    """From which row to which there is room, with the chosen one among them."""
    room = max(0, room)
    at = cells.index(focus.chosen) if focus and focus.chosen in cells else 0
    start = max(0, min(at - room // 2, len(cells) - room))
    return start, min(len(cells), start + room)


# One cell over the whole height: how it stands, and the end of its log or what happened to it.


_MOST_FACTS = 4


@dataclass(frozen=True)
class OpenedCell:
    """`facts` and `history` are sentences. `log` is None as long as nobody has read it, and empty
    where there is none.
    """

    cell: str
    state: str
    facts: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    log: tuple[str, ...] | None = None


def opened_cell_lines(sheet: Sheet, opened: OpenedCell, focus: Focus, room: int) -> list[Line]:
    top = [*_head(sheet, opened), title(sheet, sheet.word(focus.page))]
    body = _body(sheet, opened, focus)
    left = max(0, room - len(top))
    # From the end, as far back as was asked for and there is.
    end = len(body) - min(focus.back, max(0, len(body) - left))
    return [*top, *body[max(0, end - left) : end]][: max(0, room)]


def _head(sheet: Sheet, opened: OpenedCell) -> list[Line]:
    glyphs, width = sheet.snapshot.facts.glyphs, sheet.width
    sign, look = state_glyph(opened.state, glyphs)
    name = (Span(f"{sign} ", look), span(opened.cell, BOLD), span(f"  {opened.state}", look))
    facts = [
        (span(f"  {line}"),)
        for fact in opened.facts[:_MOST_FACTS]
        for line in wrapped(fact, width - 2, 3, glyphs.mark)
    ]
    return [cut(name, width, glyphs.mark), *facts]


def _body(sheet: Sheet, opened: OpenedCell, focus: Focus) -> list[Line]:
    if focus.page == HISTORY:
        told = opened.history
    elif opened.log is None:
        return [sheet.dim(sheet.word("asking"))]
    else:
        told = opened.log
    if not told:
        return [sheet.dim(sheet.word("no_log" if focus.page != HISTORY else "nothing"))]
    mark = sheet.snapshot.facts.glyphs.mark
    # Only what may be seen is wrapped: a log may have thousands of lines.
    newest = told[-(focus.back + 500) :]
    return [
        (span(part),) for line in newest for part in wrapped(span(line).text, sheet.width, 20, mark)
    ]


# Of what is done, so many rows where nobody can ask for more.
_DONE_ONCE = 3


def layout(
    snapshot: Snapshot,
    width: int,
    height: int | None = None,
    focus: Focus | None = None,
    opened: OpenedCell | None = None,
) -> list[Line]:
    """Lines of at most `width` columns: exactly `height` of them, or as many as are needed for what
    needs a person and for what runs. Without a focus nobody is there to press a key.
    """
    sheet = Sheet(snapshot, width, focus)
    top, bottom = head(sheet), foot(sheet, height)
    if height is None:
        return [stripped(line) for line in (*top, *_overview(sheet, None), *bottom)]
    top = top[: max(0, height - len(bottom))]
    room = max(0, height - len(top) - len(bottom))
    if focus and opened:
        body = opened_cell_lines(sheet, opened, focus, room)
    elif focus and (focus.shown != OVERVIEW or focus.filter):
        body = list_lines(sheet, focus, room)
    else:
        body = _overview(sheet, room)
    blank: list[Line] = [()] * (room - len(body))
    return [*top, *body, *blank, *bottom][:height]


def _overview(sheet: Sheet, room: int | None) -> list[Line]:
    """The groups as they stand: boxes, what needs a person, what runs, what is done."""
    needs, boxes, busy, done = _needs(sheet), _boxes(sheet), _under_way(sheet), _done(sheet)
    # By whose turn it is, which is not where they stand.
    groups: list[Group[Any]] = [needs, boxes, busy, done]
    given = [group.wanted for group in groups] if room is None else shares(groups, room)
    lines = [group.lines(count) for group, count in zip(groups, given, strict=True)]
    return [line for at in (1, 0, 2, 3) for line in lines[at]]


def _needs(sheet: Sheet) -> Group[Need]:
    snapshot = sheet.snapshot
    rows = snapshot.short_needs
    top, at = _title(sheet, "needs_you", rows), _chosen(sheet, rows)
    return Group(top, rows, sheet.needs, lambda n: sheet.more(n, "f"), share=3, chosen=at)


def _boxes(sheet: Sheet) -> Group[BoxRow]:
    """Those in trouble first, where not all have room."""
    rows = sorted(sheet.snapshot.boxes, key=lambda row: row.is_at_ease)

    def draw(shown: Sequence[BoxRow]) -> list[Line]:
        kept = {row.queue for row in shown}
        return sheet.boxes([row for row in sheet.snapshot.boxes if row.queue in kept])

    def fold(n: int) -> Line:
        if not n or not rows[len(rows) - n].is_at_ease:
            return sheet.more(n, "b")
        text = sheet.word("at_ease", n=n, key=sheet.key("b"))
        return sheet.dim(f"{sheet.snapshot.facts.glyphs.mark} {text}")

    return Group((), rows, draw, fold, share=2, has_head=True)


def _under_way(sheet: Sheet) -> Group[CellRow]:
    rows = sheet.snapshot.under_way
    top, at = _title(sheet, "running_title", rows), _chosen(sheet, rows)
    return Group(top, rows, sheet.cells, lambda n: sheet.more(n, "r"), share=2, chosen=at)


def _done(sheet: Sheet) -> Group[CellRow]:
    """What is done, and how many are to come."""
    snapshot = sheet.snapshot

    def fold(n: int) -> Line:
        if sheet.focus is None:
            return _rest(sheet, n)
        more = sheet.more(n, "d")
        if not snapshot.queued:
            return more
        text = sheet.word("is_queued", n=len(snapshot.queued), key=sheet.key("q"))
        queued = Span(f"{snapshot.facts.glyphs.queued} {text}", DIM)
        gap = (Span("  "),) if more else ()
        return cut((*more, *gap, queued), sheet.width, snapshot.facts.glyphs.mark)

    top = _title(sheet, "done_title", snapshot.done)
    most = ALL if sheet.focus else _DONE_ONCE
    at = _chosen(sheet, snapshot.done)
    return Group(top, snapshot.done, sheet.cells, fold, share=1, most=most, chosen=at)


def _rest(sheet: Sheet, more: int) -> Line:
    """What was left out, where no key can be pressed."""
    queued = len(sheet.snapshot.queued)
    told = [sheet.word("more_done", n=more)] if more else []
    told += [sheet.word("some_queued", n=queued)] if queued else []
    if not told:
        return ()
    mark, between = sheet.snapshot.facts.glyphs.mark, sheet.snapshot.facts.glyphs.between
    text = f" {between} ".join(told)
    line = sheet.word("all_by", text=text, command=sheet.snapshot.facts.see_all)
    return sheet.dim(f"{mark} {line}")


def _chosen(sheet: Sheet, rows: Sequence[Need | CellRow]) -> int:
    """Where the cursor is among them, else at their beginning."""
    name = sheet.focus.chosen if sheet.focus else ""
    return next((at for at, row in enumerate(rows) if row.cell == name), 0) if name else 0


def _title(sheet: Sheet, name: str, rows: Sequence[object]) -> tuple[Line, ...]:
    return (title(sheet, sheet.word(name, n=len(rows))),) if rows else ()
