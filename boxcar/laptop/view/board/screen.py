"""The board on the whole screen: drawn anew at each key, each look, and each second.

Who looks is another thread's business: keys are answered at once, however long a box takes.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import time
import tty
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import Any, Protocol

from rich.console import Console

from boxcar.laptop.view.board.focus import AT_START, focus_after_key, read_keys
from boxcar.laptop.view.board.layout import layout
from boxcar.laptop.view.board.pages import OpenedCell, sight_of
from boxcar.laptop.view.board.terminal_lines import Line, ansi, span
from boxcar.laptop.view.run_rows import RunRows

# The terminal while the board is on it: keys come one by one, and what it was is put back on every
# way out: the end, an exception (the door makes one of SIGTERM), Ctrl-C, Ctrl-Z.


_ESCAPE, _CTRL_L = b"\x1b", b"\x0c"
# The rest of an arrow key comes with its first byte, or at once behind it.
_REST_S = 0.05
_MOST_BYTES = 1024
# Heard between two drawings: raised within one, half of it may be lost.
_ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# The other screen, without a cursor. There the wheel sends arrows (1007), which was on before in
# some terminals and off in others: s keeps it, r brings it back. A drawing is shown whole (2026).
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?1007s\x1b[?1007h", "\x1b[?1007r\x1b[?25h\x1b[?1049l"
_MOUSE_ON, _MOUSE_OFF = "\x1b[?1000h\x1b[?1006h", "\x1b[?1000l\x1b[?1006l"
_BEGIN, _END, _CLEAR = "\x1b[?2026h", "\x1b[?2026l", "\x1b[2J"


class Terminal:
    """`keys` is the terminal that keys come from; the console's is drawn on. To be used in the main
    thread.
    """

    def __init__(self, keys: int, console: Console) -> None:
        self._fd, self._console = keys, console
        self._before: list[Any] = []
        self._handlers: dict[signal.Signals, Any] = {}
        self._told_to_end: signal.Signals | None = None
        self._woken, self._waker = -1, -1
        self._drawn: list[Line] = []
        self._size, self._has_mouse = (0, 0), False
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
        for number in _ENDS:
            if callable(signal.getsignal(number)):  # what is ignored, or ends at once, stays so
                self._handlers[number] = signal.signal(number, self._on_end)
        try:
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.restore()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        waker, self._waker = self._waker, -1
        os.close(waker)
        os.close(self._woken)

    def _take(self) -> None:
        tty.setcbreak(self._fd)
        self.forget()
        self._has_mouse = False
        self._write(_ENTER)

    def restore(self) -> None:
        """As it was before."""
        # A terminal that was closed takes nothing any more.
        with contextlib.suppress(OSError):
            self._write(_MOUSE_OFF * self._has_mouse + _LEAVE)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    @property
    def size(self) -> tuple[int, int]:
        return self._console.size

    def draw(self, lines: Sequence[Line], *, has_mouse: bool = False) -> None:
        """The lines that have changed, in one write: a terminal forgets what a person has selected
        where it is written over.
        """
        text, (width, height) = "", self.size
        if has_mouse != self._has_mouse:
            text, self._has_mouse = _MOUSE_ON if has_mouse else _MOUSE_OFF, has_mouse
        if self._size != (width, height):
            text, self._size, self._drawn = text + _CLEAR, (width, height), []
        blank = [span("")] * (height - len(lines))
        for at, line in enumerate((*lines, *blank)):
            if at >= len(self._drawn) or line != self._drawn[at]:
                # To erase behind the last column would take its letter.
                rest = "\x1b[K" if line.cell_len < width else ""
                text += f"\x1b[{at + 1};1H{ansi(line, self._console)}{rest}"
        self._drawn = [*lines, *blank]
        if text:
            self._write(f"{_BEGIN}{text}{_END}")

    def forget(self) -> None:
        """Draw all of it the next time: another program may have written over it."""
        self._size = (0, 0)

    def _write(self, text: str) -> None:
        data = text.encode(self._console.encoding, "replace")
        while data:
            data = data[os.write(self._console.file.fileno(), data) :]

    def wake(self) -> None:
        """End a `wait` that goes on, from any thread."""
        with contextlib.suppress(OSError):  # a full pipe wakes as well, and a closed one nobody
            os.write(self._waker, b"x")

    def wait(self, timeout_s: float) -> bytes:
        """What was typed; nothing where it was woken or the time is over. Raises EOFError where
        nobody can type any more, and what a signal raises that came since.
        """
        ready, _, _ = select.select([self._fd, self._woken], [], [], timeout_s)
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, _MOST_BYTES)
        if told := self._told_to_end:
            self._told_to_end = None
            self._handlers[told](told, None)
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
        self._take()

    def _on_resize(self, number: int, frame: FrameType | None) -> None:
        self.wake()

    def _on_end(self, number: int, frame: FrameType | None) -> None:
        self._told_to_end = signal.Signals(number)
        self.wake()

    def _on_pause(self, number: int, frame: FrameType | None) -> None:
        self.is_to_pause = True
        self.wake()


_TICK_S = 1.0  # between two that differ in the ages alone


class Feed(Protocol):
    """What the board is fed by; each may be asked at any time, and none waits."""

    def latest(self) -> tuple[RunRows, float] | None:
        """The last look and when that was, by the monotonic clock; None before the first one."""

    def is_over(self) -> bool:
        """Whether there is nothing more to come."""

    def opened(self, cell: str, top: int | None) -> OpenedCell:
        """What is known of a cell that was opened; it goes on asking for more meanwhile, and for
        what stands above the line `top` of its log.
        """


def show_board(terminal: Terminal, feed: Feed, waiting: str) -> None:
    """Until there is nothing more to come, or the person leaves. `waiting` is said before the first
    look. Raises KeyboardInterrupt, SystemExit.
    """
    focus = AT_START
    while not (focus.has_left or feed.is_over()):
        found, opened = feed.latest(), None
        lines: Sequence[Line] = [span(waiting)]
        if found:
            opened = feed.opened(focus.opened, focus.top) if focus.opened else None
            looked_s = time.monotonic() - found[1]
            lines = layout(found[0], *terminal.size, focus, opened, looked_s=looked_s)
        terminal.draw(lines, has_mouse=focus.has_mouse)
        try:
            typed = terminal.wait(_TICK_S)
        except EOFError:
            return
        if _CTRL_L in typed:
            terminal.forget()
        sight = sight_of(lines, focus, opened)
        for key in read_keys(typed):
            if found:
                focus = focus_after_key(found[0], focus, key, sight)
            else:
                focus = replace(focus, has_left=focus.has_left or key == "q")
        if terminal.is_to_pause:
            terminal.pause()
