"""What the agent's loop does whatever it is busy with: it beats, says what happens, and waits.

What takes a while comes in steps: a generator that yields where it waits, so that the loop beats
and goes on with what else is under way. Nothing here hangs: a loop that hangs must look like it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from onbox.agent.beat import Beat
from onbox.agent.orders import Orders
from onbox.agent.runner import TICK_S, Steps
from onbox.agent.settler import Settler
from onbox.machine import terminal
from onbox.machine.place import Place
from onbox.machine.room_wait import RoomWait
from onbox.queue.reporter import Reporter

T = TypeVar("T")


class Loop:
    """With it goes what all steps need: who is told, who settles, and what a person ordered."""

    def __init__(
        self, place: Place, reporter: Reporter, beat: Beat, orders: Orders, settler: Settler
    ) -> None:
        self.place, self.reporter, self.beat = place, reporter, beat
        self.orders, self.settler = orders, settler
        self.room = RoomWait(
            place.plan.full_disk_s, self.pause, lambda: orders.is_to_end, self._warn_of_no_room
        )

    def tick(self) -> None:
        """Everything that is due every few seconds."""
        worth = self.beat.tick(
            journal=self.reporter.journal_end,
            is_settling=self.settler.is_busy,
            webhooks=self.reporter.webhooks(),
            copying=self.settler.copy.now,
        )
        for found in worth:
            self._say_beside("cell.progress", **found)
        for idle in self.beat.idle():
            self._say_beside("box.idle", **idle)
        for one in self.beat.troubles():
            about = {"what": one.what, "text": one.text, "is_over": one.is_over}
            self._say_beside("box.warning", **about)
        for about in self.beat.of_cells():
            self._say_beside("box.warning", **about)
        for text in self.beat.unheard():
            with contextlib.suppress(OSError):
                self.reporter.warn("news_refused", text)

    def pause(self, wait_s: float) -> None:
        for _ in self.pausing(wait_s):
            self.tick()
            time.sleep(TICK_S)

    def pausing(self, wait_s: float) -> Steps[None]:
        until = time.monotonic() + wait_s
        while time.monotonic() < until and not self.orders.is_to_end:
            yield

    def beside(self, act: Callable[[], T]) -> Steps[T]:
        """What takes a while, done beside the loop."""
        with ThreadPoolExecutor(1) as executor:
            future = executor.submit(act)
            while not future.done():
                yield
            return future.result()

    def with_room(self, act: Callable[[], T]) -> Steps[T]:
        """Do it; while a disk is full, others go on: the end of one of them may make room."""
        tries = self.room.tries(act)
        while True:
            try:
                wait_s = next(tries)
            except StopIteration as done:
                found: T = done.value
                return found
            yield from self.pausing(wait_s)

    def say(self, type: str, **data: Any) -> None:
        """An event, which waits for room on the tier; what is said beside a cell does not."""
        self.room.through(lambda: self.reporter.say(type, **data))

    def _say_beside(self, type: str, **data: Any) -> None:
        """A tier that fails for a moment costs this event, and not the cell that runs."""
        with contextlib.suppress(OSError):
            self.reporter.say(type, **data)

    def _warn_of_no_room(self, text: str) -> None:
        terminal.say(f"{self.place.queue}: {text}")
        # The tier may be what is full.
        with contextlib.suppress(OSError):
            self.reporter.warn("disk_full", text, self.beat.cell)
