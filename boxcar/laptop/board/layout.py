"""The board as lines: what stands where, and what gives way where the terminal is small. Pure.

The head and the counts stand at the top, the next command and the keys at the bottom, always. In
between each group gets lines in turn, those that need a person first; what has no room is a line
that says how many, and which key shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxcar.laptop.board import one_list, opened_cell
from boxcar.laptop.board.box_rows import BoxRow
from boxcar.laptop.board.cell_rows import CellRow
from boxcar.laptop.board.focus import OVERVIEW, Focus
from boxcar.laptop.board.frame import foot, head, title
from boxcar.laptop.board.lines.group import ALL, Group, shares
from boxcar.laptop.board.lines.line import DIM, Line, Span, cut, stripped
from boxcar.laptop.board.needs_you import Need
from boxcar.laptop.board.opened_cell import OpenedCell
from boxcar.laptop.board.sheet import Sheet
from boxcar.laptop.board.snapshot import Snapshot

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
        body = opened_cell.opened_cell_lines(sheet, opened, focus, room)
    elif focus and (focus.shown != OVERVIEW or focus.filter):
        body = one_list.list_lines(sheet, focus, room)
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
