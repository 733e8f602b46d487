"""Locks that a dead process cannot keep: flock(2) on a file that is never removed.

The lock lies on the open file description, so whoever inherits the descriptor holds the lock too:
it is free only when the last of them has ended. On NFSv4 it excludes other hosts as well.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


def hold(path: Path, patience_s: float = 2.0) -> int | None:
    """Take the lock; the descriptor that holds it, or None where somebody else keeps it.

    The patience is for whoever only looks, with `is_held`, at the same moment.
    """
    until = time.monotonic() + patience_s
    while (fd := try_hold(path)) is None and time.monotonic() < until:
        time.sleep(0.05)
    return fd


def try_hold(path: Path) -> int | None:
    """Take the lock now; the descriptor that holds it, or None where somebody else does."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    if try_lock(fd):
        return fd
    os.close(fd)
    return None


def try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def keep(fd: int, patience_s: float = 2.0) -> bool:
    """Whether the lock of this descriptor is ours still; False where somebody else has it by now.

    A file server takes the locks of a host that was out of reach for too long (NFS: a lease, of
    some 90 s), and its processes are not told. One that nobody wants meanwhile is taken back.
    """
    until = time.monotonic() + patience_s
    while not (is_ours := try_lock(fd)) and time.monotonic() < until:
        time.sleep(0.05)
    return is_ours


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock. Asks with a shared lock, for an instant."""
    try:
        # Without waiting: the lock of an attempt lies where its script may have put a pipe.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
