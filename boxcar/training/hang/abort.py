"""A rank that C++ aborts is held for a moment, so that the watch can report it with the others.

gloo throws in a thread of its own where another rank's collective has another size. That ends the
process by SIGABRT before a line of Python runs, and a launcher then ends the others. So SIGABRT is
answered by libc's own `sleep`, which is called with the number of the signal, 6, as its seconds:
nothing but what is safe in a signal's handler. faulthandler comes first, prints the stacks and
hands the signal on; that it has done so shows in the handler that is in force.

Linux. Where the aborting thread holds Python's lock, the process ends 6 seconds later, unreported.
"""

from __future__ import annotations

import ctypes
import faulthandler
import signal
import sys
from typing import TextIO

# More than a sigaction, whose first member is the handler.
_SIGACTION_BYTES = 512


def hold_aborts(stderr: TextIO) -> None:
    """Have SIGABRT held from now on; the stacks are printed to `stderr`.

    A handler of the script's own stays. Raises OSError, ValueError, AttributeError.
    """
    # It hands a signal on to the handler that it found when it was enabled.
    faulthandler.disable()
    if sys.platform == "linux" and _handler() == 0:
        libc = ctypes.CDLL(None)
        libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        libc.signal.restype = ctypes.c_void_p
        libc.signal(int(signal.SIGABRT), _sleep())
    faulthandler.enable(stderr)


def is_abort_held() -> bool:
    """Whether this process was aborted, and ends in a few seconds. Takes a microsecond."""
    return sys.platform == "linux" and _handler() == _sleep()


def _sleep() -> int:
    return ctypes.cast(ctypes.CDLL(None).sleep, ctypes.c_void_p).value or 0


def _handler() -> int:
    action = ctypes.create_string_buffer(_SIGACTION_BYTES)
    ctypes.CDLL(None).sigaction(int(signal.SIGABRT), None, action)
    return ctypes.c_void_p.from_buffer(action).value or 0
