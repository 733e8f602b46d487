"""SIGTERM, and the SIGHUP of a terminal that is closed, as an exception: whoever started processes
in sessions of their own ends them on that way out, as after Ctrl-C.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_ENDS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def as_exit() -> Iterator[None]:
    """Within it the first of them raises SystemExit, with the code that a shell gives it.

    What follows changes nothing: of a closed terminal the shell and the kernel may both send one,
    and whoever ends its processes is not to be ended at it. What was ignored before (nohup) stays
    so.
    """
    ours = [number for number in _ENDS if _is_ours(number)]
    was_told = False

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal was_told
        if not was_told:
            was_told = True
            raise SystemExit(128 + number)

    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _is_ours(number: int) -> bool:
    """Only the main thread may hear a signal, and what somebody has chosen stays."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(number) is signal.SIG_DFL
