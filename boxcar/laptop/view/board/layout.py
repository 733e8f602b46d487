"""The board as lines: what stands where, and what gives way where the terminal is small. Pure.

The head and the counts stand at the top, the next command and the keys at the bottom, always. In
between each group gets lines in turn, those that need a person first; what has no room is a line
that says how many, and which key shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.run.state_words import state_sentence
from boxcar.laptop.view.board.focus import (
    BOXES,
    FAILED,
    OVERVIEW,
    PAGES,
    RUNNING,
    Focus,
    in_order,
    list_of_focus,
    sort_sentence,
)
from boxcar.laptop.view.board.pages import OpenedCell, page_lines
from boxcar.laptop.view.board.sheet import AT_WORK, Sheet, title
from boxcar.laptop.view.board.terminal_lines import (
    Group,
    Line,
    cut,
    joined,
    progress_bar,
    shares,
    span,
    spread,
    styled,
    wrapped,
)
from boxcar.laptop.view.looks import BOLD, DIM, state_glyph
from boxcar.laptop.view.needs import Need
from boxcar.laptop.view.run_fields import CELLS_BELOW_TITLE, Table
from boxcar.laptop.view.run_rows import BoxRow, CellRow, RunRows
from boxcar.shared.sentence import Sentence, _

# What always stands on the board: the head and the counts above, the next command below.


_MOST_NEXT, _SMALL = 3, 12  # lines of the next command, and of a terminal that has no room for them
_LEAST_FOR_BAR = 16


def head(sheet: Sheet, height: int) -> list[Line]:
    """The run, how many cells are in which state, and how far it is."""
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
    time = sheet.said(_("{time} left", time=units.about(rows.left_s))) if rows.left_s else ""
    above = spread(left, money, room, sheet.mark)
    if height < _LEAST_FOR_BAR:
        return [above, spread(_counts(sheet), styled(time), room, sheet.mark)]
    return [above, _counts(sheet), _run_bar(sheet, time)]


def _age(looked_s: float) -> Sentence:
    if looked_s < 1:
        return _("updated just now")
    return _("updated {age} ago", age=units.about(looked_s))


def _counts(sheet: Sheet) -> Line:
    rows, room = sheet.rows, sheet.width
    cells = _("{n} {n:cell|cells}", n=len(rows.view.cells))
    full = [styled(sheet.said(cells), BOLD)]
    short = [*full]
    for state, number in rows.counts:
        sign, look = state_glyph(state, sheet.facts.glyphs)
        said = sheet.said(state_sentence(state))
        full += [styled("   "), styled(f"{sign} {number} {said}", look)]
        short += [styled(" "), styled(f"{sign}{number}", look)]
    line = joined(*full)
    return cut(line if line.cell_len <= room else joined(*short), room, sheet.mark)


def _run_bar(sheet: Sheet, time: str) -> Line:
    """How much is done, what failed in it, and the time left."""
    all_cells, glyphs = len(sheet.rows.view.cells) or 1, sheet.facts.glyphs
    done, failed = len(sheet.rows.done), len(sheet.rows.failed)
    right = styled("  " + f" {glyphs.between} ".join(filter(None, (f"{done}/{all_cells}", time))))
    room = sheet.width - right.cell_len
    bar = progress_bar(done, failed, all_cells, room, glyphs)
    return cut(joined(bar, right), sheet.width, sheet.mark)


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
        typed = (
            _("search: {text}", text=f"{focus.search}_")
            if focus.page
            else _("filter: {text}", text=f"{focus.filter}_")
        )
        return cut(span(sheet.said(typed), BOLD), sheet.width, sheet.mark)
    for said in _keys_of(focus):
        line = styled(sheet.said(said), DIM)
        if line.cell_len <= sheet.width:
            break
    return cut(line, sheet.width, sheet.mark)


def _keys_of(focus: Focus) -> Sequence[str]:
    """The longest first."""
    if focus.page in PAGES:
        return _("Tab next page  / search  n N matches  ? keys  q close"), "Tab / n ? q"
    if focus.page:
        return (_("q close"),)
    if len(focus.marked) == 2:
        return _("= the two beside each other  Esc forget them  ? keys  q quit"), "= Esc ? q"
    if focus.shown == OVERVIEW and not focus.filter:
        return (
            _("Enter open  f failed  d done  u queued  b boxes  / filter  s sort  ? keys  q quit"),
            _("f failed  d done  u queued  b boxes  / filter  ? keys  q quit"),
            "f d u b / ? q",
        )
    return _("Enter open  / filter  s sort  Space mark  Esc back  ? keys  q quit"), "Esc ? q"


# One list of the board over the whole height: all that failed, is done, waits, or has a name.


def list_lines(sheet: Sheet, focus: Focus, room: int) -> list[Line]:
    """The title, and as many rows around the cursor as there is room for."""
    name, rows = list_of_focus(sheet.rows, focus)
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
        drawn = sheet.draw(AT_WORK if focus.shown == RUNNING else CELLS_BELOW_TITLE, shown)
    told = [name, *([_("{n} above", n=start)] if start else [])]
    told += [_("{n} below", n=len(rows) - end)] if end < len(rows) else []
    between = f" {sheet.facts.glyphs.between} "
    sort = "" if focus.shown in (FAILED, BOXES) and not focus.filter else _sort(sheet)
    return [title(sheet, between.join(map(sheet.said, told)), sort), *drawn][: max(0, room)]


def _sort(sheet: Sheet) -> str:
    """`by time ↓`, where the person sorts."""
    focus, glyphs = sheet.focus, sheet.facts.glyphs
    if focus is None or not focus.sort:
        return ""
    arrow = glyphs.down if focus.is_downward else glyphs.up
    return _("by {column}", column=f"{sheet.said(sort_sentence(focus.sort))} {arrow}")


def _window(cells: Sequence[str | None], focus: Focus, room: int) -> tuple[int, int]:
    """From which row to which there is room, with the chosen one among them."""
    room = max(0, room)
    at = cells.index(focus.chosen) if focus.chosen in cells else 0
    start = max(0, min(at - room // 2, len(cells) - room))
    return start, min(len(cells), start + room)


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
    top, bottom = head(sheet, height), foot(sheet, height)
    top = top[: max(0, height - len(bottom))]
    room = max(0, height - len(top) - len(bottom))
    if focus and focus.page:
        body = page_lines(sheet, focus, opened, room)
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
        _cells(sheet, _("running"), sheet.rows.under_way, AT_WORK),
        _done(sheet),
    ]
    lines = [group.lines(n) for group, n in zip(groups, shares(groups, room), strict=True)]
    return [line for at in (1, 0, 2, 3) for line in lines[at]]


def _needs(sheet: Sheet, room: int) -> Group[Any]:
    """With all their words where they take no more than half of the board."""
    rows = sheet.rows.short_needs
    top = (title(sheet, _("needs attention")),) if rows else ()
    at = _chosen(sheet, rows)
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


def _cells(
    sheet: Sheet, name: Sentence, found: Sequence[CellRow], table: Table[CellRow]
) -> Group[CellRow]:
    rows = in_order(found, sheet.focus) if sheet.focus else found
    return Group(
        (title(sheet, name, _sort(sheet)),) if rows else (),
        rows,
        lambda shown: sheet.draw(table, shown),
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
        text = sheet.said(_("{n} queued: {key}", n=queued, key=sheet.key("u")))
        last = styled(f"{'  ' if more else ''}{sheet.facts.glyphs.queued} {text}", DIM)
        return cut(joined(more, last), sheet.width, sheet.mark)

    group = _cells(sheet, _("done ({n})", n=len(rows)), rows, CELLS_BELOW_TITLE)
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
