"""One list of the board over the whole height: all that failed, is done, waits, or has a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from boxcar.laptop.board.box_rows import BoxRow
from boxcar.laptop.board.cell_rows import CellRow
from boxcar.laptop.board.focus import BOXES, DONE, FAILED, RUNNING, Focus
from boxcar.laptop.board.frame import title
from boxcar.laptop.board.lines.line import Line
from boxcar.laptop.board.needs_you import Need
from boxcar.laptop.board.sheet import Sheet
from boxcar.laptop.board.snapshot import Snapshot

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
