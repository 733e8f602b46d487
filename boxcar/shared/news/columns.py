"""How wide a text is on a screen, and what of it has room. A Chinese character takes two columns.

Rich, which counts better, would be imported for every `--help`, and no box has it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

CUT = "…"


def columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def within(text: str, room: int) -> str:
    """Its beginning, in `room` columns."""
    if columns(text) <= room:
        return text
    return _as_many(text, room - 1) + CUT


def without_middle(text: str, room: int) -> str:
    """Beginning and end, in `room` columns: what names differ by is often their end."""
    if columns(text) <= room:
        return text
    head = _as_many(text, (room - 1) // 2)
    return head + CUT + _as_many(reversed(text), room - 1 - columns(head))[::-1]


def _as_many(chars: Iterable[str], room: int) -> str:
    found = ""
    for char in chars:
        room -= columns(char)
        if room < 0:
            break
        found += char
    return found
