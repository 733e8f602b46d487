"""A name that is too long, shortened in its middle: how it ends is mostly what differs."""

from __future__ import annotations

from rich.cells import cell_len

ENDS_SHOWN = 2 / 3  # of the room, for the end of the name


def short_name(name: str, room: int, mark: str) -> str:
    """The name in at most `room` columns: `recon_…q1_seed3`."""
    if cell_len(name) <= room:
        return name
    left = room - cell_len(mark)
    if left <= 0:
        return mark if left == 0 else ""
    end = _end(name, round(left * ENDS_SHOWN))
    return f"{_begin(name, left - cell_len(end))}{mark}{end}"


def _begin(name: str, room: int) -> str:
    kept = ""
    for char in name:
        if cell_len(kept + char) > room:
            break
        kept += char
    return kept


def _end(name: str, room: int) -> str:
    return _begin(name[::-1], room)[::-1]
