"""sync_file_range(2): when the disk gets a part of a file, for who writes much and is in no hurry.

It proves nothing: that a file is on the disk is known after its fsync. Where a system or a file
system has no such call, the disk begins when the kernel wants, and nobody waits.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable

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
