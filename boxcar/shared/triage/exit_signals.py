"""What an exit code says where nothing else does: a signal's, or one that a shell gives."""

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


# `timeout` ended it; what was to be run cannot be run, or is not there.
_OF_SHELLS = {124: "TIME_LIMIT", 126: "NOEXE", 127: "NOEXE"}


def signal_of_exit(rcs: Collection[int]) -> str:
    """The id of the row, '' for none. Negative is the signal's number, from 128 on a shell's."""
    for id, number in _ROWS:
        if -number in rcs or 128 + number in rcs:
            return id
    return next((id for rc, id in _OF_SHELLS.items() if rc in rcs), "")


def is_signal(rc: int) -> bool:
    return rc < 0 or 128 < rc < 160
