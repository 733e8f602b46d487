"""The board as lines: what stands where, and what gives way where the terminal is small. Pure.

The head and the counts stand at the top, the next command and the keys at the bottom, always. In
between each group gets lines in turn, those that need a person first; what has no room is a line
that says how many, and which key shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.run.state_words import state_sentence
from boxcar.laptop.view.board.terminal_lines import (
    Group,
    Line,
    cut,
    draw_rows,
    joined,
    mark_chosen,
    shares,
    span,
    spread,
    styled,
    wrapped,
)
from boxcar.laptop.view.looks import BOLD, DIM, state_glyph
from boxcar.laptop.view.needs import Need
from boxcar.laptop.view.run_fields import BOXES as BOX_TABLE
from boxcar.laptop.view.run_fields import CELLS_BELOW_TITLE, NEEDS, R, Table
from boxcar.laptop.view.run_rows import BoxRow, CellRow, Facts, RunRows
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _

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


def rows_in_reach(rows: RunRows, focus: Focus) -> list[str]:
    """The cells between which the arrows move, in the order of the screen."""
    if focus.filter or focus.shown != OVERVIEW:
        found: Sequence[Any] = _list_of(rows, focus)[1]
    else:
        found = [*rows.short_needs, *rows.under_way, *rows.done]
    return list(dict.fromkeys(row.cell for row in found if row.cell))


def move_focus(rows: RunRows, focus: Focus, by: int) -> Focus:
    """The cursor so many rows down. It comes in at the edge, and stops at both."""
    names = rows_in_reach(rows, focus)
    if not names:
        return replace(focus, chosen="")
    before = -1 if by > 0 else len(names)
    at = (names.index(focus.chosen) if focus.chosen in names else before) + by
    return replace(focus, chosen=names[min(len(names) - 1, max(0, at))])


def open_cell(rows: RunRows, focus: Focus, page: str) -> Focus:
    """The page of the chosen cell, else of the first one."""
    names = rows_in_reach(rows, focus)
    cell = focus.chosen if focus.chosen in names else next(iter(names), "")
    return replace(focus, opened=cell, chosen=cell, page=page, back=0) if cell else focus


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
        drawn = draw_rows(BOX_TABLE, aged, self.facts, self.width, has_titles=True)
        head, *lines = [line for [line] in drawn]
        return [head, *(self._with_cursor(lines, rows) if has_cursor else lines)]

    def _with_cursor(self, lines: list[Line], rows: Sequence[Any]) -> list[Line]:
        if self.focus is None or not self.focus.chosen:
            return lines
        return [
            mark_chosen(line, self.width) if row.cell == self.focus.chosen else line
            for line, row in zip(lines, rows, strict=True)
        ]


# What always stands on the board: the head and the counts above, the next command below.


_MOST_NEXT, _SMALL = 3, 12  # lines of the next command, and of a terminal that has no room for them


def head(sheet: Sheet) -> list[Line]:
    """The run, and how many cells are in which state."""
    rows, facts, room = sheet.rows, sheet.facts, sheet.width
    age = sheet.said(_age(sheet.looked_s))
    boxes = sheet.said(_("{n} {n:box|boxes}", n=len(rows.boxes)))
    between = f" {facts.glyphs.between} "
    # The first that fits: how old all of it is says more than the time of the day.
    words = [facts.profile, boxes, rows.clock, age]
    choices = [words, [facts.profile, boxes, age], [boxes, age], [age], []]
    money, left = styled(rows.money, BOLD), styled("")
    for chosen in choices:
        left = joined(span(rows.run, BOLD), *(styled(f"{between}{one}") for one in chosen))
        if left.cell_len + (money.cell_len + 2 if money else 0) <= room:
            break
    return [spread(left, money, room, sheet.mark), _counts(sheet)]


def _age(looked_s: float) -> Sentence:
    if looked_s < 1:
        return _("updated just now")
    return _("updated {age} ago", age=units.about(looked_s))


def _counts(sheet: Sheet) -> Line:
    rows, room = sheet.rows, sheet.width
    cells = _("{n} {n:cell|cells}", n=len(rows.view.cells))
    full = [styled(sheet.said(cells), BOLD)]
    short = [*full]
    time = _("{time} left", time=units.about(rows.left_s)) if rows.left_s else ""
    for state, number in rows.counts:
        sign, look = state_glyph(state, sheet.facts.glyphs)
        said = sheet.said(state_sentence(state))
        full += [styled("   "), styled(f"{sign} {number} {said}", look)]
        short += [styled(" "), styled(f"{sign}{number}", look)]
    line = joined(*full)
    left = line if line.cell_len <= room else joined(*short)
    return spread(left, styled(sheet.said(time)), room, sheet.mark)


def title(sheet: Sheet, name: str) -> Line:
    """`── needs attention ─────`."""
    rule, room = sheet.facts.glyphs.rule, sheet.width
    line = joined(styled(f"{rule}{rule} ", DIM), styled(sheet.said(name), BOLD), styled(" "))
    rest = styled(rule * max(0, room - line.cell_len), DIM)
    return cut(joined(line, rest), room, sheet.mark)


def foot(sheet: Sheet, height: int) -> list[Line]:
    """The next command with its reason, and the keys."""
    lines, room = _next(sheet, height), sheet.width
    if sheet.focus is None:
        return lines
    keys = _keys(sheet, sheet.focus)
    if len(lines) == 1 and lines[0].cell_len + keys.cell_len + 2 <= room:
        return [spread(lines[0], keys, room, sheet.mark)]
    return [*lines, keys]


def _next(sheet: Sheet, height: int) -> list[Line]:
    facts, room = sheet.facts, sheet.width
    because = facts.because
    most = _MOST_NEXT if height > _SMALL else 2
    if not facts.next:
        return [span(one, BOLD) for one in wrapped(because, room, most, sheet.mark)]
    command = sheet.said(_("next: {command}", command=facts.next))
    why = sheet.said(_("{command}  ({because})", command=command, because=because))
    left = len(command)
    drawn: list[Line] = []
    for line in wrapped(why if because else command, room, most, sheet.mark):
        bold, rest = line[: max(0, left)], line[max(0, left) :]
        drawn.append(joined(span(bold, BOLD), span(rest)))
        left -= len(line) + 1
    return drawn


def _keys(sheet: Sheet, focus: Focus) -> Line:
    if focus.is_typing:
        typed = _("filter: {text}", text=f"{focus.filter}_")
        return cut(span(sheet.said(typed), BOLD), sheet.width, sheet.mark)
    is_overview = focus.shown == OVERVIEW and not focus.filter
    keys = (
        _("[f]ailed [d]one [q]ueued [b]oxes [l]og [e]xplain [/]filter e[x]it")
        if is_overview
        else _("arrows move, Enter opens, Esc back, e[x]it")
    )
    keys = _("[l]og [e]xplain, Esc back, e[x]it") if focus.opened else keys
    for said in (keys, _("f d q b l e / x")):
        line = styled(sheet.said(said), DIM)
        if line.cell_len <= sheet.width:
            return line
    return styled("")


# One list of the board over the whole height: all that failed, is done, waits, or has a name.


def list_lines(sheet: Sheet, focus: Focus, room: int) -> list[Line]:
    """The title, and as many rows around the cursor as there is room for."""
    name, rows = _list_of(sheet.rows, focus)
    is_of_boxes = focus.shown == BOXES and not focus.filter
    start, end = _window([row.cell for row in rows], focus, room - 1 - is_of_boxes)
    shown = rows[start:end]
    if not shown:
        drawn = [sheet.dim(sheet.said(_("nothing here")))]
    elif is_of_boxes:
        drawn = sheet.draw_boxes(shown, has_cursor=True)
    elif focus.shown == FAILED and not focus.filter:
        drawn = sheet.draw_needs(shown)
    else:
        drawn = sheet.draw(CELLS_BELOW_TITLE, shown)
    told = [name, *([_("{n} above", n=start)] if start else [])]
    told += [_("{n} below", n=len(rows) - end)] if end < len(rows) else []
    between = f" {sheet.facts.glyphs.between} "
    return [title(sheet, between.join(map(sheet.said, told))), *drawn][: max(0, room)]


def _list_of(rows: RunRows, focus: Focus) -> tuple[str, Sequence[Any]]:
    """What is shown of a focus that is no overview, with its title."""
    if focus.filter:
        wanted = focus.filter.casefold()
        found = [row for row in rows.all_cells if wanted in row.cell.casefold()]
        return _("cells matching {text} ({n})", text=focus.filter, n=len(found)), found
    if focus.shown == FAILED:
        return _("needs attention ({n})", n=len(rows.needs)), rows.needs
    if focus.shown == BOXES:
        return _("boxes ({n})", n=len(rows.boxes)), rows.boxes
    if focus.shown == DONE:
        return _("done ({n})", n=len(rows.done)), rows.done
    if focus.shown == RUNNING:
        return _("running"), rows.under_way
    return _("queued ({n})", n=len(rows.queued)), rows.queued


def _window(cells: Sequence[str | None], focus: Focus, room: int) -> tuple[int, int]:
    """From which row to which there is room, with the chosen one among them."""
    room = max(0, room)
    at = cells.index(focus.chosen) if focus.chosen in cells else 0
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
    page = _("what happened") if focus.page == HISTORY else _("end of the log")
    top = [*_head_of_cell(sheet, opened), title(sheet, page)]
    body = _body(sheet, opened, focus)
    left = max(0, room - len(top))
    # From the end, as far back as was asked for and there is.
    end = len(body) - min(focus.back, max(0, len(body) - left))
    return [*top, *body[max(0, end - left) : end]][: max(0, room)]


def _head_of_cell(sheet: Sheet, opened: OpenedCell) -> list[Line]:
    sign, look = state_glyph(opened.state, sheet.facts.glyphs)
    state = sheet.said(state_sentence(opened.state))
    name = joined(styled(f"{sign} ", look), span(opened.cell, BOLD), span(f"  {state}", look))
    facts = [
        span(f"  {line}")
        for fact in opened.facts[:_MOST_FACTS]
        for line in wrapped(fact, sheet.width - 2, 3, sheet.mark)
    ]
    return [cut(name, sheet.width, sheet.mark), *facts]


def _body(sheet: Sheet, opened: OpenedCell, focus: Focus) -> list[Line]:
    told = opened.history if focus.page == HISTORY else opened.log
    if told is None:
        return [sheet.dim(sheet.said(_("loading…")))]
    if not told:
        nothing, no_log = _("nothing here"), _("no log yet")
        return [sheet.dim(sheet.said(nothing if focus.page == HISTORY else no_log))]
    # Only what may be seen is wrapped: a log may have thousands of lines.
    newest = [span(line).plain for line in told[-(focus.back + 500) :]]
    return [span(part) for line in newest for part in wrapped(line, sheet.width, 20, sheet.mark)]


_MOST_LINES = 3  # for one that needs a person


def layout(
    rows: RunRows,
    width: int,
    height: int,
    focus: Focus | None = None,
    opened: OpenedCell | None = None,
    *,
    looked_s: float = 0.0,
) -> list[Line]:
    """Lines of at most `width` columns: exactly `height` of them, or no more than those. Without a
    focus nobody is there to press a key.
    """
    sheet = Sheet(rows, width, focus, looked_s)
    top, bottom = head(sheet), foot(sheet, height)
    top = top[: max(0, height - len(bottom))]
    room = max(0, height - len(top) - len(bottom))
    if focus and opened:
        body = opened_cell_lines(sheet, opened, focus, room)
    elif focus and (focus.shown != OVERVIEW or focus.filter):
        body = list_lines(sheet, focus, room)
    else:
        body = _overview(sheet, room)
    if focus is None:
        lines = [*top, *body, *bottom]
        for line in lines:
            line.rstrip()
        return lines
    blank = [styled("")] * (room - len(body))
    return [*top, *body, *blank, *bottom][:height]


def _overview(sheet: Sheet, room: int) -> list[Line]:
    """The groups as they stand: boxes, what needs a person, what runs, what is done."""
    # By whose turn it is, which is not where they stand.
    groups: list[Group[Any]] = [
        _needs(sheet, room),
        _boxes(sheet),
        _cells(sheet, _("running"), sheet.rows.under_way),
        _done(sheet),
    ]
    lines = [group.lines(n) for group, n in zip(groups, shares(groups, room), strict=True)]
    return [line for at in (1, 0, 2, 3) for line in lines[at]]


def _needs(sheet: Sheet, room: int) -> Group[Any]:
    """With all their words where they take no more than half of the board."""
    rows = sheet.rows.short_needs
    top, at = _title(sheet, _("needs attention"), rows), _chosen(sheet, rows)
    whole = sheet.draw_needs(rows, _MOST_LINES)
    if len(whole) < room // 2:
        return Group(top, whole, list, lambda n: styled(""), share=3)
    return Group(top, rows, sheet.draw_needs, lambda n: sheet.more(n, "f"), share=3, chosen=at)


def _boxes(sheet: Sheet) -> Group[BoxRow]:
    """Those in trouble first, where not all have room."""
    rows = sorted(sheet.rows.boxes, key=lambda row: row.is_at_ease)

    def draw(shown: Sequence[BoxRow]) -> list[Line]:
        kept = {row.queue.name for row in shown}
        return sheet.draw_boxes([row for row in sheet.rows.boxes if row.queue.name in kept])

    def fold(n: int) -> Line:
        if not n or not rows[len(rows) - n].is_at_ease:
            return sheet.more(n, "b")
        text = sheet.said(_("{n} {n:box|boxes} fine: {key}", n=n, key=sheet.key("b")))
        return sheet.dim(f"{sheet.mark} {text}")

    return Group((), rows, draw, fold, share=2, has_head=True)


def _cells(sheet: Sheet, name: Sentence, rows: Sequence[CellRow]) -> Group[CellRow]:
    return Group(
        _title(sheet, name, rows),
        rows,
        lambda shown: sheet.draw(CELLS_BELOW_TITLE, shown),
        lambda n: sheet.more(n, "r"),
        share=2,
        chosen=_chosen(sheet, rows),
    )


def _done(sheet: Sheet) -> Group[CellRow]:
    """What is done, and how many are to come."""
    rows, queued = sheet.rows.done, len(sheet.rows.queued)

    def fold(n: int) -> Line:
        if sheet.focus is None:
            return _rest(sheet, n)
        more = sheet.more(n, "d")
        if not queued:
            return more
        text = sheet.said(_("{n} queued: {key}", n=queued, key=sheet.key("q")))
        last = styled(f"{'  ' if more else ''}{sheet.facts.glyphs.queued} {text}", DIM)
        return cut(joined(more, last), sheet.width, sheet.mark)

    group = _cells(sheet, _("done ({n})", n=len(rows)), rows)
    return replace(group, fold=fold, share=1)


def _rest(sheet: Sheet, more: int) -> Line:
    """What was left out, where no key can be pressed."""
    queued = len(sheet.rows.queued)
    told = [_("{n} more done", n=more)] if more else []
    told += [_("{n} queued", n=queued)] if queued else []
    if not told:
        return styled("")
    text = f" {sheet.facts.glyphs.between} ".join(map(sheet.said, told))
    line = _("{text}: {command}", text=text, command=sheet.facts.see_all)
    return sheet.dim(f"{sheet.mark} {sheet.said(line)}")


def _chosen(sheet: Sheet, rows: Sequence[Need | CellRow]) -> int:
    """Where the cursor is among them, else at their beginning."""
    name = sheet.focus.chosen if sheet.focus else ""
    return next((at for at, row in enumerate(rows) if row.cell == name), 0) if name else 0


def _title(sheet: Sheet, name: Sentence, rows: Sequence[object]) -> tuple[Line, ...]:
    return (title(sheet, name),) if rows else ()
