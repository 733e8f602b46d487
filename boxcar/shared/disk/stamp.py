"""What the disk says of a file, by which one that nobody wrote to since is known."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from pathlib import Path

# Some file systems tell times in steps of two seconds: a file that was changed so shortly before
# it was read may be changed once more without another time.
_YOUNG_NS = 3_000_000_000
# Mode, size, times of content and inode (ns), inode, device.
FIELDS = ("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_dev")
Stamp = list[int]
# Of what a stat says.
stamp_of_stat: Callable[[os.stat_result], tuple[int, ...]] = operator.attrgetter(*FIELDS)


def stamp_of(path: Path | str) -> Stamp:
    """Of the file that a link leads to. Raises OSError."""
    return [*stamp_of_stat(os.stat(path))]  # noqa: PTH116  (a run has a hundred thousand)


def stamp_of_link(path: Path) -> Stamp | None:
    """Of a link itself; None where nothing is there, or cannot be asked."""
    try:
        return [*stamp_of_stat(os.lstat(path))]
    except OSError:
        return None


def is_old(stamp: Sequence[int], now_ns: int) -> bool:
    """Whether whoever writes to the file from now on gives it another one."""
    return max(stamp[2], stamp[3]) + _YOUNG_NS < now_ns
