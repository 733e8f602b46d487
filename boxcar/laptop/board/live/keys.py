"""What a key does on the board. Pure: the bytes of a terminal become keys, a key another focus."""

from __future__ import annotations

import re
from dataclasses import replace

from boxcar.laptop.board.layout import (
    BOXES,
    DONE,
    FAILED,
    HISTORY,
    LOG,
    OVERVIEW,
    QUEUED,
    RUNNING,
    Focus,
    move_focus,
    open_cell,
)
from boxcar.laptop.board.snapshot import Snapshot

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = "up", "down", "page up", "page down", "home", "end"
ENTER, ESCAPE, BACKSPACE, OTHER = "enter", "escape", "backspace", "other"
_FAR = 1_000_000
_SEQUENCES = {
    **{b"A": UP, b"B": DOWN, b"C": ENTER, b"D": ESCAPE, b"H": HOME, b"F": END},
    **{b"5~": PAGE_UP, b"6~": PAGE_DOWN, b"1~": HOME, b"4~": END, b"7~": HOME, b"8~": END},
}
_KEY = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]|[\xc2-\xf4][\x80-\xbf]+|.", re.DOTALL)
_SINGLE = {b"\x1b": ESCAPE, b"\r": ENTER, b"\n": ENTER, b"\x7f": BACKSPACE, b"\x08": BACKSPACE}
_LISTS = {
    **{"f": FAILED, "r": RUNNING, "d": DONE},
    **{"q": QUEUED, "b": BOXES},
}
_STEPS = {UP: -1, DOWN: 1, HOME: -_FAR, END: _FAR}


def read_keys(data: bytes) -> list[str]:
    """The keys in what a terminal sent: a letter, or one of the names above."""
    return [_key(found) for found in _KEY.findall(data)]


def _key(found: bytes) -> str:
    if found in _SINGLE:
        return _SINGLE[found]
    if found[:1] == b"\x1b":
        return _SEQUENCES.get(found[2:], OTHER)
    text = found.decode("utf-8", "replace")
    return text if text.isprintable() else OTHER


def focus_after_key(snapshot: Snapshot, focus: Focus, key: str, page: int) -> Focus:
    """Where the person is after the key; `page` is how many rows a page has."""
    if focus.is_typing:
        return _typed(focus, key)
    if key == "x":
        return replace(focus, has_left=True)
    if focus.opened:
        return _in_cell(focus, key, page)
    if key in _LISTS:
        shown = OVERVIEW if focus.shown == _LISTS[key] else _LISTS[key]
        return Focus(shown)
    if key in _STEPS or key in (PAGE_UP, PAGE_DOWN):
        return move_focus(snapshot, focus, _STEPS.get(key, page if key == PAGE_DOWN else -page))
    if key in (ENTER, "l"):
        return open_cell(snapshot, focus, LOG)
    if key == "e":
        return open_cell(snapshot, focus, HISTORY)
    if key == "/":
        return Focus(is_typing=True)
    return Focus() if key == ESCAPE else focus


def _typed(focus: Focus, key: str) -> Focus:
    if key == ESCAPE:
        return Focus()
    if key == ENTER:
        return replace(focus, is_typing=False)
    if key == BACKSPACE:
        return replace(focus, filter=focus.filter[:-1])
    return replace(focus, filter=focus.filter + key) if len(key) == 1 else focus


def _in_cell(focus: Focus, key: str, page: int) -> Focus:
    if key == ESCAPE:
        return replace(focus, opened="", back=0)
    if key in ("l", "e"):
        return replace(focus, page=LOG if key == "l" else HISTORY, back=0)
    steps = {UP: 1, DOWN: -1, PAGE_UP: page, PAGE_DOWN: -page, HOME: _FAR, END: -_FAR}
    return replace(focus, back=max(0, min(_FAR, focus.back + steps.get(key, 0))))
