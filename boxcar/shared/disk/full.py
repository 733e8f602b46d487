"""When a disk is full: what the system says then. A quota and a limit on one file mean the same."""

from __future__ import annotations

import errno

# By name, for a program on a box that has nothing of ours yet.
ERRNO_NAMES = ("ENOSPC", "EDQUOT", "EFBIG")
_ERRNOS = frozenset(getattr(errno, name) for name in ERRNO_NAMES)


def is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _ERRNOS


def full_disk_error(path: str) -> OSError:
    """What a write says that a full disk cut short, where the system itself raised nothing."""
    return OSError(errno.ENOSPC, "No space left on device", path)
