"""The kernel's word of what happens in folders, by watchdog's calls and without the threads of its
observers: three of them wake up one after another before whoever waits is told.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path


def opened() -> int:
    """A new descriptor, which does not block. Raises OSError where there are none, or no more."""
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    from watchdog.observers import inotify_c

    fd = _raised(inotify_c.inotify_init())
    os.set_inheritable(fd, False)
    os.set_blocking(fd, False)
    return fd


def add(fd: int, folder: Path | str, mask: int) -> int:
    """Watch a folder for `mask` (of InotifyConstants); the number that its events carry. Raises
    OSError.
    """
    from watchdog.observers import inotify_c

    only = inotify_c.InotifyConstants.IN_ONLYDIR
    return _raised(inotify_c.inotify_add_watch(fd, os.fsencode(folder), mask | only))


def _raised(result: int) -> int:
    """Raises OSError."""
    import ctypes

    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
