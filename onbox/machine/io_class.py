"""Where the calling thread stands in the line for a disk, as ionice says it for a process.

Where there is no such line (another system, a disk without a scheduler), nothing changes.
"""

from __future__ import annotations

import ctypes
import platform

# ioprio_set(2), which no C library has under a name.
_NUMBERS = {"x86_64": 251, "aarch64": 30}
_OF_THIS_THREAD = (1, 0)
_USUAL, _IDLE = 0, 3 << 13


def give_way() -> None:
    """Behind all others who wait for it."""
    _set(_IDLE)


def be_usual() -> None:
    """In turn again."""
    _set(_USUAL)


def _set(io_class: int) -> None:
    number = _NUMBERS.get(platform.machine())
    libc = ctypes.CDLL(None, use_errno=True)
    if platform.system() == "Linux" and number is not None and hasattr(libc, "syscall"):
        libc.syscall(number, *_OF_THIS_THREAD, io_class)
