"""What the disk says of the files of a hundred thousand cells: a row of numbers for each."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator

from boxcar.shared.disk import stamp

_WIDTH = len(stamp.FIELDS)
# Of a file that is not there or cannot be asked, and of one with a time before 1970, of which
# nothing is kept: it is never old.
_NOTHING, _UNKNOWN = (0,) * _WIDTH, (2**64 - 1,) * _WIDTH


def of_all(below: int, names: Iterable[str]) -> array[int]:
    """`below`: the folder, open; from there on and without a Path, the way to each is short."""
    found, stat, of_stat = array("Q"), os.stat, stamp.of_stat
    for name in names:
        try:
            found.extend(of_stat(stat(name, dir_fd=below)))
        except OSError:
            found.extend(_NOTHING)
        except OverflowError:  # in the middle of its row
            del found[count(found) * _WIDTH :]
            found.extend(_UNKNOWN)
    return found


def count(found: array[int]) -> int:
    return len(found) // _WIDTH


def of_one(row: stamp.Stamp) -> array[int]:
    try:
        return array("Q", row)
    except OverflowError:
        return array("Q", _UNKNOWN)


def put(found: array[int], at: int, row: array[int]) -> None:
    """In the place of the one that is there, or behind the last."""
    found[at * _WIDTH : (at + 1) * _WIDTH] = row


def youngest(found: array[int]) -> list[int]:
    """The largest number of each column: where it is old, all are."""
    return [max(found[at::_WIDTH], default=0) for at in range(_WIDTH)]


def unlike(found: array[int], before: array[int]) -> Iterator[int]:
    """Which rows are not what they were; of two that are equally long."""
    if found == before:
        return
    size_bytes = found.itemsize * _WIDTH
    now, then = found.tobytes(), before.tobytes()
    for at in range(0, len(now), size_bytes):
        if now[at : at + size_bytes] != then[at : at + size_bytes]:
            yield at // size_bytes
