"""Where a person is on the board, and where each key brings them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.view.board.terminal_lines import Line
from boxcar.laptop.view.run_rows import CellRow, RunRows
from boxcar.shared.metrics.records import NOT_METRICS
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, known_word, mark

OVERVIEW, FAILED, RUNNING, DONE = "overview", "failed", "running", "done"
QUEUED, BOXES = "queued", "boxes"
# What may lie over the list: a cell's pages, two cells beside each other, the keys.
LOG, STORY, WHY, BESIDE, HELP = "log", "story", "why", "beside", "help"
PAGES = (LOG, STORY, WHY)


@dataclass(frozen=True)
class Focus:
    """`chosen` is a cell's name. `filter` narrows the list to names that contain it. `page` lies
    over the list and shows `opened`; `top` is the number of its first line on the screen, None
    where it begins by itself: a log at its end, which it follows. `search` is looked for in it.
    """

    shown: str = OVERVIEW
    chosen: str = ""
    filter: str = ""
    sort: str = ""
    is_downward: bool = False
    marked: tuple[str, ...] = ()
    page: str = ""
    opened: str = ""
    top: int | None = None
    search: str = ""
    is_typing: bool = False
    has_mouse: bool = False
    has_left: bool = False

    @property
    def is_following(self) -> bool:
        """Whether its page begins at the end."""
        return self.page in (LOG, STORY)


AT_START = Focus()


@dataclass(frozen=True)
class Sight:
    """What is on the screen as a key comes: its lines, and the whole text of the page, whose first
    line has the number `first`.
    """

    lines: Sequence[Line] = ()
    text: Sequence[str] = ()
    first: int = 0

    @property
    def numbers(self) -> list[int]:
        return [line.of for line in self.lines if isinstance(line.of, int)]


# Which rows a list has, and in which order.


def progress_of_row(row: CellRow) -> tuple[str, float | None]:
    """How far it is, in figures and as a part of 1; None where nobody knows of how much."""
    said, told = row.view.progress, row.view.epochs_done
    step, steps = said.get("step"), said.get("total_steps")
    if not told and isinstance(step, int):
        if not isinstance(steps, int) or steps <= 0:
            return f"step {units.count(step)}", None
        return f"{units.count(step)}/{units.count(steps)}", min(1.0, step / steps)
    found = _OF.match(told)
    if found and float(found[2]):
        return told, min(1.0, float(found[1]) / float(found[2]))
    return f"epoch {told}" if told.isdigit() else told, None


_SORTS: dict[str, Callable[[CellRow], Any]] = {
    mark("cell"): lambda row: row.cell,
    mark("state"): lambda row: row.counted_as,
    mark("progress"): lambda row: progress_of_row(row)[1],
    mark("left"): lambda row: row.left_s or None,
    mark("time"): lambda row: row.view.seconds or None,
    mark("speed"): lambda row: row.view.seen.per_s if row.view.seen else None,
    mark("box"): lambda row: row.view.box or None,
}
_OF = re.compile(r"~?([\d.]+)/([\d.]+)")  # what was guessed has a mark
_ROWS_ASKED = 3  # for the names of their numbers


def sorts_of_run(rows: RunRows) -> list[str]:
    """By what cells can be sorted: each number, and each column."""
    asked = [*rows.under_way[:_ROWS_ASKED], *rows.done[:_ROWS_ASKED]]
    return [*dict.fromkeys(name for row in asked for name in numbers_of_row(row)), *_SORTS]


def numbers_of_row(row: CellRow) -> dict[str, float]:
    """What it measured last, by name; without what cannot be compared."""
    return {
        name: value
        for name, value in row.last_numbers.items()
        if isinstance(value, (int, float)) and isfinite(value) and name not in NOT_METRICS
    }


def sort_sentence(sort: str) -> str:
    return known_word(sort, _SORTS)


def in_order(rows: Sequence[CellRow], focus: Focus) -> Sequence[CellRow]:
    """As the person wants them; those of which it is not known come last."""
    if not focus.sort:
        return rows
    key = _SORTS.get(focus.sort)
    keyed: list[tuple[Any, CellRow]] = [
        (key(row) if key else numbers_of_row(row).get(focus.sort), row) for row in rows
    ]
    known = [one for one in keyed if one[0] is not None]
    known.sort(key=lambda one: one[0], reverse=focus.is_downward)
    return [row for _value, row in (*known, *(one for one in keyed if one[0] is None))]


def list_of_focus(rows: RunRows, focus: Focus) -> tuple[Sentence, Sequence[Any]]:
    """What is shown of a focus that is no overview, with its title."""
    if focus.filter:
        wanted = focus.filter.casefold()
        found = [row for row in rows.all_cells if wanted in row.cell.casefold()]
        named = _("cells matching {text} ({n})", text=focus.filter, n=len(found))
        return named, in_order(found, focus)
    if focus.shown == FAILED:
        return _("needs attention ({n})", n=len(rows.needs)), rows.needs
    if focus.shown == BOXES:
        return _("boxes ({n})", n=len(rows.boxes)), rows.boxes
    if focus.shown == DONE:
        return _("done ({n})", n=len(rows.done)), in_order(rows.done, focus)
    if focus.shown == RUNNING:
        return _("running"), in_order(rows.under_way, focus)
    return _("queued ({n})", n=len(rows.queued)), in_order(rows.queued, focus)


def rows_in_reach(rows: RunRows, focus: Focus) -> list[str]:
    """The cells between which the arrows move, in the order of the screen."""
    if focus.filter or focus.shown != OVERVIEW:
        found = list_of_focus(rows, focus)[1]
    else:
        cells = (*in_order(rows.under_way, focus), *in_order(rows.done, focus))
        found = [*rows.short_needs, *cells]
    return list(dict.fromkeys(row.cell for row in found if row.cell))


# Keys: the bytes of a terminal, and what each does.


UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = "up", "down", "page up", "page down", "home", "end"
ENTER, ESCAPE, BACKSPACE, TAB, OTHER = "enter", "escape", "backspace", "tab", "other"
CLICK = "click "  # and the number of the line
_FAR = 1_000_000_000
_WHEEL, _WHEEL_LINES = {b"64": UP, b"65": DOWN}, 3
_SEQUENCES = {
    **{b"A": UP, b"B": DOWN, b"C": ENTER, b"D": ESCAPE, b"H": HOME, b"F": END},
    **{b"5~": PAGE_UP, b"6~": PAGE_DOWN, b"1~": HOME, b"4~": END, b"7~": HOME, b"8~": END},
}
_KEY = re.compile(
    rb"\x1b\[<[0-9;]*[Mm]?|\x1b[\[O][0-9;]*[A-Za-z~]|[\xc2-\xf4][\x80-\xbf]+|.", re.DOTALL
)
_MOUSE = re.compile(rb"\x1b\[<(\d+);\d+;(\d+)([Mm])")
_SINGLE = {
    **{b"\x1b": ESCAPE, b"\r": ENTER, b"\n": ENTER, b"\x7f": BACKSPACE, b"\x08": BACKSPACE},
    **{b"\t": TAB, b"\x06": PAGE_DOWN, b"\x02": PAGE_UP, b"\x04": PAGE_DOWN, b"\x15": PAGE_UP},
}
_LETTERS = {"k": UP, "j": DOWN, "g": HOME, "G": END}
_LISTS = {"f": FAILED, "r": RUNNING, "d": DONE, "u": QUEUED, "b": BOXES}
_STEPS = {UP: -1, DOWN: 1, HOME: -_FAR, END: _FAR}
_OPENS = {ENTER: LOG} | {str(number): page for number, page in enumerate(PAGES, 1)}


def read_keys(data: bytes) -> list[str]:
    """The keys in what a terminal sent: a letter, or one of the names above."""
    return [key for found in _KEY.findall(data) for key in _keys(found)]


def _keys(found: bytes) -> Iterator[str]:
    if found in _SINGLE:
        yield _SINGLE[found]
    elif mouse := _MOUSE.fullmatch(found):
        if mouse[1] in _WHEEL:
            yield from [_WHEEL[mouse[1]]] * _WHEEL_LINES
        elif (mouse[1], mouse[3]) == (b"0", b"M"):
            yield f"{CLICK}{int(mouse[2]) - 1}"
    elif found[:1] == b"\x1b":
        yield _SEQUENCES.get(found[2:], OTHER)
    else:
        text = found.decode("utf-8", "replace")
        yield text if text.isprintable() else OTHER


def focus_after_key(rows: RunRows, focus: Focus, key: str, sight: Sight) -> Focus:
    """Where the person is after the key."""
    if focus.is_typing:
        return _after_typing(focus, key, sight)
    key = _LETTERS.get(key, key)
    if key == "?" and focus.page != HELP:
        return replace(focus, page=HELP, top=None)
    if key == "m":
        return replace(focus, has_mouse=not focus.has_mouse)
    return _on_page(focus, key, sight) if focus.page else _in_list(rows, focus, key, sight)


def _after_typing(focus: Focus, key: str, sight: Sight) -> Focus:
    """What is typed shows at once what it finds."""
    before = focus.search if focus.page else focus.filter
    if key in (ESCAPE, ENTER):
        text = before if key == ENTER else ""
    elif key == BACKSPACE:
        text = before[:-1]
    else:
        text = before + key if len(key) == 1 else before
    focus = replace(focus, is_typing=key not in (ESCAPE, ENTER))
    if not focus.page:
        return replace(focus, filter=text)
    found = replace(focus, search=text)
    return found if text in ("", before) else _to_match(found, sight, 0)


def _in_list(rows: RunRows, focus: Focus, key: str, sight: Sight) -> Focus:
    if key == "q":
        return replace(focus, has_left=True)
    if key in _LISTS:
        shown = OVERVIEW if focus.shown == _LISTS[key] else _LISTS[key]
        return replace(focus, shown=shown, chosen="", filter="")
    if key in (*_STEPS, PAGE_UP, PAGE_DOWN):
        page = max(1, sum(isinstance(line.of, str) for line in sight.lines) - 1)
        step = _STEPS.get(key, page if key == PAGE_DOWN else -page)
        return _moved(rows, focus, step)
    if key in _OPENS:
        return _opened(rows, focus, _OPENS[key])
    if key.startswith(CLICK):
        return _clicked(focus, sight, int(key.removeprefix(CLICK)))
    if key == "s":
        return replace(focus, sort=_next_of(["", *sorts_of_run(rows)], focus.sort))
    if key == "S":
        return replace(focus, is_downward=not focus.is_downward)
    if key in (" ", "="):
        return _beside(focus, key)
    if key == "/":
        return replace(focus, is_typing=True, shown=OVERVIEW, chosen="", filter="")
    if key == ESCAPE:
        return replace(focus, shown=OVERVIEW, chosen="", filter="", marked=())
    return focus


def _next_of(names: Sequence[str], name: str) -> str:
    at = names.index(name) if name in names else -1
    return names[(at + 1) % len(names)]


def _moved(rows: RunRows, focus: Focus, by: int) -> Focus:
    """The cursor so many rows down. It comes in at the edge, and stops at both."""
    names = rows_in_reach(rows, focus)
    if not names:
        return replace(focus, chosen="")
    before = -1 if by > 0 else len(names)
    at = (names.index(focus.chosen) if focus.chosen in names else before) + by
    return replace(focus, chosen=names[min(len(names) - 1, max(0, at))])


def _opened(rows: RunRows, focus: Focus, page: str) -> Focus:
    """The page of the chosen cell, else of the first one."""
    names = rows_in_reach(rows, focus)
    cell = focus.chosen if focus.chosen in names else next(iter(names), "")
    if not cell:
        return focus
    return replace(focus, opened=cell, chosen=cell, page=page, top=None, search="")


def _clicked(focus: Focus, sight: Sight, line: int) -> Focus:
    """What is chosen already opens."""
    cell = sight.lines[line].of if line < len(sight.lines) else None
    if not isinstance(cell, str):
        return focus
    if cell == focus.chosen:
        return replace(focus, opened=cell, page=LOG, top=None, search="")
    return replace(focus, chosen=cell)


def _beside(focus: Focus, key: str) -> Focus:
    """Two cells are marked at most, the last ones; where it is one, the chosen one is beside it."""
    others = tuple(cell for cell in focus.marked if cell != focus.chosen)
    both = (*others, *([focus.chosen] if focus.chosen else ()))[-2:]
    if key == " ":
        return replace(focus, marked=others if focus.chosen in focus.marked else both)
    both = focus.marked if len(focus.marked) == 2 else both
    return replace(focus, marked=both, page=BESIDE, top=None) if len(both) == 2 else focus


def _on_page(focus: Focus, key: str, sight: Sight) -> Focus:
    if key == ESCAPE and focus.search:
        return replace(focus, search="")
    if key in (ESCAPE, "q", "?"):
        below = LOG if focus.page == HELP and focus.opened else ""
        return replace(focus, page=below, opened=focus.opened if below else "", top=None, search="")
    if focus.page in PAGES:
        if key in _OPENS and key != ENTER:
            return replace(focus, page=_OPENS[key], top=None, search="")
        if key == TAB:
            return replace(focus, page=_next_of(PAGES, focus.page), top=None, search="")
        if key == "/":
            return replace(focus, is_typing=True, search="")
        if key in ("n", "N") and focus.search:
            return _to_match(focus, sight, 1 if key == "n" else -1)
    return _scrolled(focus, PAGE_DOWN if key == " " else key, sight)


def _scrolled(focus: Focus, key: str, sight: Sight) -> Focus:
    """A page that is at its end stays there, and a log there follows what comes."""
    if not sight.numbers:
        return focus
    above, below = sight.numbers[0], sight.numbers[-1]
    end, page = sight.first + len(sight.text), max(1, below - above)
    if key in (DOWN, PAGE_DOWN, END) and (key == END or below + 1 >= end):
        return replace(focus, top=None if focus.is_following else end)
    tops = {UP: above - 1, DOWN: above + 1, PAGE_UP: above - page, PAGE_DOWN: below, HOME: -_FAR}
    if key not in tops:
        return focus
    return replace(focus, top=-_FAR if key == HOME else max(sight.first, tops[key]))


def _to_match(focus: Focus, sight: Sight, by: int) -> Focus:
    """The next line in which it stands, after the last one the first; by 0 this one or one above
    it.
    """
    wanted, count = focus.search.casefold(), len(sight.text)
    at = count - (by >= 0) if focus.top is None else max(0, focus.top - sight.first)
    for away in range(abs(by), count + abs(by)):
        place = (at + away * (by or -1)) % count
        if wanted in sight.text[place].casefold():
            return replace(focus, top=sight.first + place)
    return focus
