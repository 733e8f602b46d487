"""The board on the whole screen: drawn anew at each key, each look, and each second.

Who looks is another thread's business: keys are answered at once, however long a box takes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from rich.console import Console
from rich.live import Live

from boxcar.laptop.board.layout import AT_START, Focus, OpenedCell, layout
from boxcar.laptop.board.live import keys
from boxcar.laptop.board.live.terminal import Terminal
from boxcar.laptop.board.snapshot import Snapshot
from boxcar.laptop.board.terminal_lines import Line, page, span

_TICK_S = 1.0  # between two that differ in the ages alone
_FRAME = 6  # lines of the head and the foot


class Feed(Protocol):
    """What the board is fed by; each may be asked at any time, and none waits."""

    def latest(self) -> tuple[Snapshot, float] | None:
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
            page([]),
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
        live.update(page(_lines(feed, focus, width, height, waiting)), refresh=True)
        try:
            typed = terminal.wait(_TICK_S)
        except EOFError:
            return replace(focus, has_left=True)
        for key in keys.read_keys(typed):
            focus = _after(feed, focus, key, height)
    return focus


def _after(feed: Feed, focus: Focus, key: str, height: int) -> Focus:
    found = feed.latest()
    if found is None:
        return replace(focus, has_left=key == "x")
    return keys.focus_after_key(found[0], focus, key, max(1, height - _FRAME))


def _lines(feed: Feed, focus: Focus, width: int, height: int, waiting: str) -> Sequence[Line]:
    found = feed.latest()
    if found is None:
        return [(span(waiting),)]
    snapshot, looked_at_s = found
    now = replace(snapshot, looked_s=time.monotonic() - looked_at_s)
    opened = feed.opened(focus.opened) if focus.opened else None
    return layout(now, width, height, focus, opened)
