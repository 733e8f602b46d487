"""Where the person is on the board: which list is open, which row is chosen, what is typed."""

from __future__ import annotations

from dataclasses import replace

from boxcar.laptop.board.snapshot import Snapshot
from boxcar.shared.record import dataclass

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
