"""What the disk says of a file, by which one that nobody wrote to since is known."""

from __future__ import annotations

import os
from pathlib import Path

# Some file systems tell times in steps of two seconds: a file that was changed so shortly before
# it was read may be changed once more without another time.
_YOUNG_NS = 3_000_000_000
# Mode, size, times of content and inode (ns), inode, device.
Stamp = list[int]


def of(path: Path | str) -> Stamp:
    """Of the file that a link leads to. Raises OSError."""
    return _of(os.stat(path))  # noqa: PTH116  (a run has a hundred thousand)


def spelled(found: os.stat_result) -> str:
    """A stamp with a space between two of its numbers: a text is compared at once."""
    times = f"{found.st_mtime_ns} {found.st_ctime_ns}"
    return f"{found.st_mode} {found.st_size} {times} {found.st_ino} {found.st_dev}"


def of_link(path: Path) -> Stamp | None:
    """Of a link itself; None where nothing is there, or cannot be asked."""
    try:
        return _of(os.lstat(path))
    except OSError:
        return None


def is_old(stamp: Stamp, now_ns: int) -> bool:
    """Whether whoever writes to the file from now on gives it another one."""
    return max(stamp[2], stamp[3]) + _YOUNG_NS < now_ns


def _of(found: os.stat_result) -> Stamp:
    times = [found.st_mtime_ns, found.st_ctime_ns]
    return [found.st_mode, found.st_size, *times, found.st_ino, found.st_dev]
