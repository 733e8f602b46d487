"""The turn of a program that waits: from the words of its cell until it is told to go.

It is called while the agent still writes that the attempt starts, and gets ready beside that. Until
it is told to go it holds the cell's log, writes nothing, and starts nothing.

A module of its own, and that it is staged says that a release's program can be called; an older
one's is at work as soon as it is let in.
"""

from __future__ import annotations

import os
import time

from onbox.cell.wrapper.waiting import GO, Said, spelled
from onbox.machine.light import suppress

_LOOKS_EVERY_S = 0.0002
# What follows is the heir's.
_LENGTH_BYTES = len(spelled(GO, ()))


class Turn:
    """`may_go` follows, and `end` once the script has started; before both, `is_heir` may."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._holds: int | None = None

    def is_heir(self, tells: int) -> bool:
        """Leave an heir: a copy, made before anything of the cell is known. Whether this is it.

        It says its process id on `tells`, once its parent is who adopts orphans, and does no more
        before `end`: it would hear what is said here, and want the cores that the script starts on.
        Where there can be none, the agent finds none.
        """
        with suppress(OSError):
            waits, self._holds = os.pipe()
            if between := os.fork():
                os.waitpid(between, 0)
                return False
            with suppress(OSError):  # whoever comes of this is another process
                between = os.getpid()
                if os.fork() == 0:
                    os.close(self._holds)
                    while os.getppid() == between:
                        time.sleep(_LOOKS_EVERY_S)
                    os.setsid()
                    os.write(tells, b"%d\n" % os.getpid())
                    os.read(waits, 1)  # its end
                    os.close(waits)
                    return True
            os._exit(0)
        return False

    def may_go(self) -> bool:
        """Whether it is told to go; not where the agent is gone, or could not write it."""
        told = self._said.next(_LENGTH_BYTES)
        self._said.close()
        return told is not None and told[0] == GO

    def end(self) -> None:
        """The script has started: what is said from now on is for the heir."""
        if self._holds is not None:
            os.close(self._holds)
            self._holds = None
