"""How wide a text is on a screen, and what of it has room. A Chinese character takes two columns.

Rich, which counts better, would be imported for every `--help`, and no box has it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

CUT = "…"
_ENDS_SHOWN = 2 / 3  # of the room, for the end of a name: it is mostly what differs
_LEAST_OF_BOTH = 24  # columns, for the beginning of a path beside its end


def width_in_cells(text: str) -> int:
    """How many columns of a screen it takes."""
    if text.isascii():
        return len(text)
    return sum(2 if is_wide(char) else not unicodedata.combining(char) for char in text)


def is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def beginning(text: str, room: int, mark: str = CUT) -> str:
    """Its beginning, in `room` columns."""
    if width_in_cells(text) <= room:
        return text
    return as_much_as_fits(text, room - width_in_cells(mark)) + mark


def short_name(name: str, room: int, mark: str = CUT) -> str:
    """Beginning and end, in `room` columns: `recon_…q1_seed3`. Of a path that
    has little room its end, which tells it from others: `…/sweep/job.yaml`.
    """
    if width_in_cells(name) <= room:
        return name
    left = room - width_in_cells(mark)
    if left <= 0:
        return mark if left == 0 else ""
    shown = 1.0 if name.startswith("/") and room < _LEAST_OF_BOTH else _ENDS_SHOWN
    end = as_much_as_fits(reversed(name), round(left * shown))[::-1]
    return f"{as_much_as_fits(name, left - width_in_cells(end))}{mark}{end}"


def as_much_as_fits(chars: Iterable[str], room: int) -> str:
    found = ""
    for char in chars:
        room -= width_in_cells(char)
        if room < 0:
            break
        found += char
    return found
