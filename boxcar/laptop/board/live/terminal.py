"""The terminal while the board is on it: keys come one by one, and what it was is put back on every
way out: the end, an exception (the door makes one of SIGTERM), Ctrl-C, Ctrl-Z.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import tty
from types import FrameType
from typing import Any

_ESCAPE = b"\x1b"
# The rest of an arrow key comes with its first byte, or at once behind it.
_REST_S = 0.05
_MOST_BYTES = 1024


class Terminal:
    """`fd` is the terminal that keys come from. To be used in the main thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: list[Any] = []
        self._handlers: dict[signal.Signals, Any] = {}
        self._woken, self._waker = -1, -1
        self.is_to_pause = False

    def __enter__(self) -> Terminal:
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        self._before = termios.tcgetattr(self._fd)
        self._handlers = {
            signal.SIGWINCH: signal.signal(signal.SIGWINCH, self._on_resize),
            signal.SIGTSTP: signal.signal(signal.SIGTSTP, self._on_pause),
        }
        tty.setcbreak(self._fd)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self.restore()
        waker, self._waker = self._waker, -1
        os.close(waker)
        os.close(self._woken)

    def restore(self) -> None:
        """As it was before."""
        # A terminal that was closed takes nothing any more.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def wake(self) -> None:
        """End a `wait` that goes on, from any thread."""
        with contextlib.suppress(OSError):  # a full pipe wakes as well, and a closed one nobody
            os.write(self._waker, b"x")

    def wait(self, timeout_s: float) -> bytes:
        """What was typed; nothing where it was woken or the time is over. Raises EOFError where
        nobody can type any more.
        """
        ready, _, _ = select.select([self._fd, self._woken], [], [], timeout_s)
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, _MOST_BYTES)
        if self._fd not in ready:
            return b""
        data = self._read()
        while data.endswith(_ESCAPE) and select.select([self._fd], [], [], _REST_S)[0]:
            data += self._read()
        return data

    def _read(self) -> bytes:
        try:
            data = os.read(self._fd, _MOST_BYTES)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        return data

    def pause(self) -> None:
        """Stop as any program does at Ctrl-Z; it goes on here when the shell says so."""
        self.is_to_pause = False
        self.restore()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._on_pause)
        tty.setcbreak(self._fd)

    def _on_resize(self, number: int, frame: FrameType | None) -> None:
        self.wake()

    def _on_pause(self, number: int, frame: FrameType | None) -> None:
        self.is_to_pause = True
        self.wake()
