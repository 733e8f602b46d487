"""Noticing that a queue file or a control file has changed, without asking all the time.

inotify where the kernel tells; on a network file system it knows nothing of what other hosts write.
Which it is, is decided by the file system's type, and by whether the box has watches left. The
agent looks by itself all the same: after `FLOOR_S`, and where nobody tells after `POLL_S`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from boxcar.shared.disk import mounts

FLOOR_S = 5.0
POLL_S = 1.0
_SOME_BYTES = 1 << 16


class QueueWatch:
    """Watches a few folders (not what is below them); `wait` returns early when one changed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        # What ends a wait once it can be read: a pipe, and inotify; None where nobody tells.
        self._woken, self._wakes = os.pipe()
        self._told: int | None = None

    def __enter__(self) -> QueueWatch:
        for fd in (self._woken, self._wakes):
            os.set_blocking(fd, False)
        if not any(is_remote(folder) for folder in self._folders):
            with contextlib.suppress(OSError):
                self._told = _opened(self._folders)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Numbers of descriptors are given out again, and a signal may still come.
        fds, self._wakes = (self._woken, self._wakes, self._told), -1
        for fd in fds:
            if fd is not None:
                os.close(fd)

    def wait(self, timeout_s: float) -> bool:
        """Until something changed, which it says, or has to be looked for; at most `timeout_s`
        seconds.
        """
        fds, most_s = [self._woken], POLL_S
        if self._told is not None:
            fds, most_s = [self._woken, self._told], FLOOR_S
        told = select.select(fds, [], [], max(0.0, min(timeout_s, most_s)))[0]
        for fd in told:
            with contextlib.suppress(BlockingIOError):
                os.read(fd, _SOME_BYTES)
        return bool(told)

    def wake(self) -> None:
        """End a wait, from a signal handler or a thread."""
        if self._wakes >= 0:
            with contextlib.suppress(BlockingIOError):  # it is woken already
                os.write(self._wakes, b"!")


def is_remote(folder: Path) -> bool:
    """Whether other hosts may write there; False where the system does not tell."""
    mount = mounts.mount_of(folder)
    return mount is not None and mount.is_remote


def _opened(folders: Sequence[Path]) -> int:
    """Of changes only: to read is an event, too, and our own reading would end a wait. Raises
    OSError.
    """
    fd = opened()  # first: where there is none, what follows cannot be imported
    from watchdog.observers.inotify_c import InotifyConstants as Of

    mask = (
        Of.IN_MODIFY | Of.IN_ATTRIB | Of.IN_CREATE | Of.IN_DELETE | Of.IN_MOVE | Of.IN_DELETE_SELF
    )
    try:
        for folder in folders:
            add(fd, folder, mask)
    except OSError:
        os.close(fd)
        raise
    return fd


# --- The kernel's word of what happens in folders, by watchdog's calls and without the threads of
# its observers: three of them wake up one after another before whoever waits is told.


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
