"""Leaving an heir: a copy of the program that waits, made once it is let in and before it knows
anything of its cell.

A module of its own, and that it is staged says that a release's program can do it.
"""

from __future__ import annotations

import os
import time

from onbox.machine.light import suppress

_LOOKS_EVERY_S = 0.0002


def is_heir(tells: int) -> bool:
    """Leave an heir; whether this is it. Where there can be none, the agent finds none.

    It says its process id on `tells`, once its parent is who adopts orphans.
    """
    with suppress(OSError):
        if between := os.fork():
            os.waitpid(between, 0)
            return False
        with suppress(OSError):  # whoever comes of this is another process
            between = os.getpid()
            if os.fork() == 0:
                while os.getppid() == between:
                    time.sleep(_LOOKS_EVERY_S)
                os.setsid()
                os.write(tells, b"%d\n" % os.getpid())
                return True
        os._exit(0)
    return False
