"""A large file, written from its front, of which the disk has nearly all when it ends.

So the fsync at its end finds little to do. Where it leaves room, who else waits for the disk
meanwhile, as a journal does, waits for two parts of it and not for all that memory holds; whoever
has a training wait for it leaves none.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable

from boxcar.shared.disk import digest

# sync_file_range(2): when the disk gets a part of a file, for who writes much and is in no hurry.
#
# It proves nothing: that a file is on the disk is known after its fsync. Where a system or a file
# system has no such call, the disk begins when the kernel wants, and nobody waits.


_WAIT_BEFORE, _WRITE, _WAIT_AFTER = 1, 2, 4
_HAS_NONE = (errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.ESPIPE, errno.EPERM)


def begin(fd: int, start: int, size_bytes: int) -> None:
    """Have the disk begin with these bytes. Raises OSError."""
    _call(fd, start, size_bytes, _WRITE)


def wait(fd: int, start: int, size_bytes: int) -> None:
    """Until they are written. Raises OSError for what could not be: no fsync would tell of it."""
    _call(fd, start, size_bytes, _WAIT_BEFORE | _WRITE | _WAIT_AFTER)


def _call(fd: int, start: int, size_bytes: int, flags: int) -> None:
    function = _function()
    if function is None or function(fd, start, size_bytes, flags) == 0:
        return
    number = ctypes.get_errno()
    if number not in _HAS_NONE:
        raise OSError(number, os.strerror(number))


@functools.cache
def _function() -> Callable[[int, int, int, int], int] | None:
    function = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    called: Callable[[int, int, int, int], int] = function
    return called


# So much that a disk far away is busy with it. Also the most in one call: another thread gets the
# interpreter between two, and Linux ends a write at 2 GiB by itself.
PART_BYTES = 4 * 1024 * 1024


class Sink:
    """Writes to a descriptor, which stays its caller's."""

    def __init__(self, fd: int, *, leaves_room: bool = False) -> None:
        self._fd, self._leaves_room = fd, leaves_room
        # Written up to the last of these; up to the second the disk was told to begin.
        self._on_disk = self._begun = self._written = 0

    def write(self, data: memoryview) -> None:
        """All of it, bytes. Raises OSError, also for what was written before."""
        for start in range(0, len(data), PART_BYTES):
            self._write(data[start : start + PART_BYTES])

    def _write(self, block: memoryview) -> None:
        self._written += len(block)
        while block:
            block = block[os.write(self._fd, block) :]
        if self._written - self._begun >= PART_BYTES:
            self._pass_on()

    def _pass_on(self) -> None:
        """The newest part to the disk, which is busy with it while the one before is waited for."""
        begin(self._fd, self._begun, self._written - self._begun)
        if self._leaves_room and self._begun > self._on_disk:
            wait(self._fd, self._on_disk, self._begun - self._on_disk)
            digest.forget_cached_pages(self._fd, self._on_disk, self._begun)
        self._on_disk, self._begun = self._begun, self._written
