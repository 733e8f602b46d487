"""The mirror of a cell's live checkpoint, in a thread of its own: no end of a cell waits for it.

A copy gives way to all who wait for the disk, as the record of a cell's end and the next claim do.
Once the cell has succeeded the copy under way is given up; the result is what counts then. Whoever
removes what was mirrored waits until nothing is written there any more. At a stop the newest one
is what must arrive, and before the box is gone.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from boxcar.shared.errors import BoxcarError
from onbox.cell.live_checkpoint import Mirror
from onbox.machine import io_class

# Longer than that nobody waits for a checkpoint that may be due.
LOOK_EVERY_S = 1.0
_SHORTEST_S = 0.05
# A disk that is never idle must not keep a checkpoint from the tier.
GIVES_WAY_S = 60.0


class GivenUp(Exception):
    """The copy is not needed any more."""


class Mirroring:
    def __init__(
        self,
        mirror: Mirror,
        fail: Callable[[Exception], None],
        bytes_per_s: float | None = None,
    ) -> None:
        """`fail` hears of a copy that could not be made: that costs the mirror, not the cell.

        `bytes_per_s`: what a copy beside the training may take of the tier, read back included.
        """
        self._mirror, self._fail = mirror, fail
        self._bytes_per_s = bytes_per_s
        self._is_over = False
        self._is_given_up = False
        self._is_behind = False
        self.was_late = False  # for good
        # From when on the newest is wanted at once; whether it was tried.
        self._is_hurried, self._was_tried = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self._thread.start()

    def flush(self, tick: Callable[[], None], every_s: float, until: float = math.inf) -> bool:
        """Mirror the newest checkpoint; False where that was not through at `until`, in the seconds
        of time.monotonic(). It is given up then, and the one before stays. `tick` is called
        meanwhile. A copy under way goes on, unless a newer one is complete.
        """
        self._was_tried.clear()
        self._is_behind = self._mirror.is_behind()
        self._is_hurried.set()
        while self._thread.is_alive() and not self._was_tried.wait(every_s):
            tick()
            if time.monotonic() >= until:
                self.was_late = True
                self.give_up()
                return False
        return True

    def finish(self, tick: Callable[[], None], every_s: float) -> None:
        """The last copy is that under way, which is waited for."""
        self._end()
        while self._thread.is_alive():
            self._thread.join(every_s)
            tick()

    def give_up(self) -> None:
        """Without waiting: the copy under way ends at its next block."""
        self._is_given_up = True
        self._end()

    def wait(self) -> None:
        """Until nothing is written any more; after one of the two above."""
        self._thread.join()

    def _end(self) -> None:
        self._is_over = True
        self._is_hurried.set()

    def _run(self) -> None:
        while not self._is_over:
            pause_s = min(LOOK_EVERY_S, max(_SHORTEST_S, self._mirror.due_in_s))
            is_hurried = self._is_hurried.wait(pause_s)
            if self._is_over:
                return
            if is_hurried:
                self._is_behind = False
                self._do(lambda: self._mirror.flush(self._go_on))
                self._is_hurried.clear()
                self._was_tried.set()
            else:
                self._do(self._tick)

    def _tick(self) -> None:
        began, done_bytes = time.monotonic(), 0

        def on_chunk(size_bytes: int) -> None:
            nonlocal done_bytes
            done_bytes += size_bytes
            ran_s = time.monotonic() - began
            if self._is_hurried.is_set() or ran_s > GIVES_WAY_S:
                io_class.be_usual()
            self._is_hurried.wait(ahead_s(done_bytes, ran_s, self._bytes_per_s))
            self._go_on(size_bytes)

        io_class.give_way()
        try:
            self._mirror.tick(on_chunk)
        finally:
            io_class.be_usual()

    def _go_on(self, size_bytes: int) -> None:
        if self._is_given_up or self._is_behind:
            raise GivenUp

    def _do(self, act: Callable[[], None]) -> None:
        try:
            act()
        except GivenUp:
            return
        except (BoxcarError, OSError) as error:
            if not self._is_given_up:
                self._fail(error)


def ahead_s(done_bytes: int, ran_s: float, bytes_per_s: float | None) -> float:
    """For how long a copy that takes no more than so much a second has to rest now."""
    return 0.0 if bytes_per_s is None else max(0.0, done_bytes / bytes_per_s - ran_s)
