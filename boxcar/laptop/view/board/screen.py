"""The board on the whole screen: drawn anew at each key, each look, and each second.

Who looks is another thread's business: keys are answered at once, however long a box takes.
"""

from __future__ import annotations

import contextlib
import os
import re
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
from rich.live import Live

from boxcar.laptop.view.board.layout import (
    AT_START,
    BOXES,
    DONE,
    FAILED,
    HISTORY,
    LOG,
    OVERVIEW,
    QUEUED,
    RUNNING,
    Focus,
    OpenedCell,
    layout,
    move_focus,
    open_cell,
)
from boxcar.laptop.view.board.terminal_lines import Line, paint_lines, span
from boxcar.laptop.view.run_rows import RunRows

# The terminal while the board is on it: keys come one by one, and what it was is put back on every
# way out: the end, an exception (the door makes one of SIGTERM), Ctrl-C, Ctrl-Z.


_ESCAPE = b"\x1b"
# The rest of an arrow key comes with its first byte, or at once behind it.
_REST_S = 0.05
_MOST_BYTES = 1024
# Heard between two drawings: raised within one of rich's, its way out of the screen may be lost.
_ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Terminal:
    """`fd` is the terminal that keys come from. To be used in the main thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: list[Any] = []
        self._handlers: dict[signal.Signals, Any] = {}
        self._told_to_end: signal.Signals | None = None
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
        for number in _ENDS:
            if callable(signal.getsignal(number)):  # what is ignored, or ends at once, stays so
                self._handlers[number] = signal.signal(number, self._on_end)
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
        tty.setcbreak(self._fd)

    def _on_resize(self, number: int, frame: FrameType | None) -> None:
        self.wake()

    def _on_end(self, number: int, frame: FrameType | None) -> None:
        self._told_to_end = signal.Signals(number)
        self.wake()

    def _on_pause(self, number: int, frame: FrameType | None) -> None:
        self.is_to_pause = True
        self.wake()


# What a key does on the board. Pure: the bytes of a terminal become keys, a key another focus.


UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = "up", "down", "page up", "page down", "home", "end"
ENTER, ESCAPE, BACKSPACE, OTHER = "enter", "escape", "backspace", "other"
_FAR = 1_000_000
_SEQUENCES = {
    **{b"A": UP, b"B": DOWN, b"C": ENTER, b"D": ESCAPE, b"H": HOME, b"F": END},
    **{b"5~": PAGE_UP, b"6~": PAGE_DOWN, b"1~": HOME, b"4~": END, b"7~": HOME, b"8~": END},
}
_KEY = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]|[\xc2-\xf4][\x80-\xbf]+|.", re.DOTALL)
_SINGLE = {b"\x1b": ESCAPE, b"\r": ENTER, b"\n": ENTER, b"\x7f": BACKSPACE, b"\x08": BACKSPACE}
_LISTS = {
    **{"f": FAILED, "r": RUNNING, "d": DONE},
    **{"q": QUEUED, "b": BOXES},
}
_STEPS = {UP: -1, DOWN: 1, HOME: -_FAR, END: _FAR}


def read_keys(data: bytes) -> list[str]:
    """The keys in what a terminal sent: a letter, or one of the names above."""
    return [_key(found) for found in _KEY.findall(data)]


def _key(found: bytes) -> str:
    if found in _SINGLE:
        return _SINGLE[found]
    if found[:1] == b"\x1b":
        return _SEQUENCES.get(found[2:], OTHER)
    text = found.decode("utf-8", "replace")
    return text if text.isprintable() else OTHER


def focus_after_key(rows: RunRows, focus: Focus, key: str, page: int) -> Focus:
    """Where the person is after the key; `page` is how many rows a page has."""
    if focus.is_typing:
        return _typed(focus, key)
    if key == "x":
        return replace(focus, has_left=True)
    if focus.opened:
        return _in_cell(focus, key, page)
    if key in _LISTS:
        shown = OVERVIEW if focus.shown == _LISTS[key] else _LISTS[key]
        return Focus(shown)
    if key in _STEPS or key in (PAGE_UP, PAGE_DOWN):
        return move_focus(rows, focus, _STEPS.get(key, page if key == PAGE_DOWN else -page))
    if key in (ENTER, "l"):
        return open_cell(rows, focus, LOG)
    if key == "e":
        return open_cell(rows, focus, HISTORY)
    if key == "/":
        return Focus(is_typing=True)
    return Focus() if key == ESCAPE else focus


def _typed(focus: Focus, key: str) -> Focus:
    if key == ESCAPE:
        return Focus()
    if key == ENTER:
        return replace(focus, is_typing=False)
    if key == BACKSPACE:
        return replace(focus, filter=focus.filter[:-1])
    return replace(focus, filter=focus.filter + key) if len(key) == 1 else focus


def _in_cell(focus: Focus, key: str, page: int) -> Focus:
    if key == ESCAPE:
        return replace(focus, opened="", back=0)
    if key in ("l", "e"):
        return replace(focus, page=LOG if key == "l" else HISTORY, back=0)
    steps = {UP: 1, DOWN: -1, PAGE_UP: page, PAGE_DOWN: -page, HOME: _FAR, END: -_FAR}
    return replace(focus, back=max(0, min(_FAR, focus.back + steps.get(key, 0))))


_TICK_S = 1.0  # between two that differ in the ages alone
_FRAME = 6  # lines of the head and the foot


class Feed(Protocol):
    """What the board is fed by; each may be asked at any time, and none waits."""

    def latest(self) -> tuple[RunRows, float] | None:
        """The last look and when that was, by the monotonic clock; None before the first one."""

    def is_over(self) -> bool:
        """Whether there is nothing more to come."""

    def opened(self, cell: str) -> OpenedCell:
        """What is known of a cell that was opened; it goes on asking for more meanwhile."""


def show_board(console: Console, terminal: Terminal, feed: Feed, waiting: str) -> None:
    """Until there is nothing more to come, or the person leaves. `waiting` is said before the first
    look. Raises KeyboardInterrupt, SystemExit.
    """
    focus = AT_START
    while not (focus.has_left or feed.is_over()):
        with Live(
            paint_lines([]),
            console=console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as live:
            focus = _until_paused(live, terminal, feed, focus, waiting)
        if terminal.is_to_pause:
            terminal.pause()


def _until_paused(live: Live, terminal: Terminal, feed: Feed, focus: Focus, waiting: str) -> Focus:
    while not (focus.has_left or feed.is_over() or terminal.is_to_pause):
        width, height = live.console.size
        live.update(paint_lines(_lines(feed, focus, width, height, waiting)), refresh=True)
        try:
            typed = terminal.wait(_TICK_S)
        except EOFError:
            return replace(focus, has_left=True)
        for key in read_keys(typed):
            focus = _after(feed, focus, key, height)
    return focus


def _after(feed: Feed, focus: Focus, key: str, height: int) -> Focus:
    found = feed.latest()
    if found is None:
        return replace(focus, has_left=key == "x")
    return focus_after_key(found[0], focus, key, max(1, height - _FRAME))


def _lines(feed: Feed, focus: Focus, width: int, height: int, waiting: str) -> Sequence[Line]:
    found = feed.latest()
    if found is None:
        return [span(waiting)]
    rows, looked_at_s = found
    opened = feed.opened(focus.opened) if focus.opened else None
    return layout(rows, width, height, focus, opened, looked_s=time.monotonic() - looked_at_s)
