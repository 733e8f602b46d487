"""What an exit code that is a signal's says, where nothing else does."""

from __future__ import annotations

from collections.abc import Collection

# The surest first: who is killed last may have been told to end before.
_ROWS = (
    ("SEGV", 11),
    ("BUS", 7),
    ("ILL", 4),
    ("FPE", 8),
    ("137-N", 9),
    ("ABRT", 6),
    ("HUP", 1),
    ("INT", 2),
    ("TERM", 15),
)


def of(rcs: Collection[int]) -> str:
    """The id of the row, '' for none. Negative is the signal's number, from 128 on a shell's."""
    for id, number in _ROWS:
        if -number in rcs or 128 + number in rcs:
            return id
    return ""


def is_signal(rc: int) -> bool:
    return rc < 0 or 128 < rc < 160
