"""The mirror of a cell's live checkpoint, in a thread of its own: no end of a cell waits for it.

A copy gives way to all who wait for the disk, as the record of a cell's end and the next claim do,
and rests longer than it works.
Once the cell has succeeded the copy under way is given up; the result is what counts then. What it
had written goes when the result is settled, beside the next cell. Whoever removes what was mirrored
waits until nothing is written there any more. At a stop the newest one is what must arrive, and
before the box is gone.
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
# Where nobody settles a result. Some disks are told of each block that becomes free, 0.2 s for a
# GiB, and every fsync waits for it: that of the next cell's claim would.
STANDS_STILL_S = 1.0
# For each second of CPU that a copy took beside the training: the agent's other threads get theirs.
RESTS = 2.0


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
        self._news = threading.Event()
        self._is_over = False
        self._is_given_up = False
        self._is_waited_for = threading.Event()  # by whoever removes or settles
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
        self._news.set()
        while self._thread.is_alive() and not self._was_tried.wait(every_s):
            tick()
            if time.monotonic() >= until:
                self.was_late = True
                self.give_up()
                self._is_waited_for.set()
                return False
        return True

    def finish(self, tick: Callable[[], None], every_s: float) -> None:
        """The last copy is that under way, which is waited for."""
        self._end()
        while self._thread.is_alive():
            self._thread.join(every_s)
            tick()

    def give_up(self) -> None:
        """Without waiting: the copy under way stands still at its next block, and ends later."""
        self._is_given_up = True
        self._end()

    def wait(self) -> None:
        """Until nothing is written any more; after one of the two above."""
        self._is_waited_for.set()
        self._thread.join()

    def _end(self) -> None:
        self._is_over = True
        self._is_hurried.set()
        self._news.set()

    def _run(self) -> None:
        while not self._is_over:
            self._news.wait(min(LOOK_EVERY_S, max(_SHORTEST_S, self._mirror.due_in_s)))
            self._news.clear()
            if self._is_over:
                return
            if self._is_hurried.is_set():
                self._is_behind = False
                self._do(lambda: self._mirror.flush(self._go_on))
                self._is_hurried.clear()
                self._was_tried.set()
            else:
                self._do(self._tick)

    def _tick(self) -> None:
        pace, until = _Pace(self._bytes_per_s, self._is_hurried), time.monotonic() + GIVES_WAY_S

        def on_chunk(size_bytes: int) -> None:
            if self._is_hurried.is_set() or time.monotonic() > until:
                io_class.be_usual()
            pace.keep(size_bytes)
            self._go_on(size_bytes)

        io_class.give_way()
        try:
            self._mirror.tick(on_chunk)
        finally:
            io_class.be_usual()

    def _go_on(self, size_bytes: int) -> None:
        if self._is_given_up:
            self._is_waited_for.wait(STANDS_STILL_S)
            self._is_waited_for.set()  # once: what closes a packed folder writes, too
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


class _Pace:
    """At most so many bytes a second, and most of the time at rest, until somebody hurries."""

    def __init__(self, bytes_per_s: float | None, hurry: threading.Event) -> None:
        self._bytes_per_s, self._hurry = bytes_per_s, hurry
        self._began, self._bytes = time.monotonic(), 0
        self._cpu_s = time.thread_time()

    def keep(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        self._hurry.wait(max(self._rest_s(), self._ahead_s()))
        self._cpu_s = time.thread_time()

    def _rest_s(self) -> float:
        return RESTS * (time.thread_time() - self._cpu_s)

    def _ahead_s(self) -> float:
        if self._bytes_per_s is None:
            return 0.0
        return self._bytes / self._bytes_per_s - (time.monotonic() - self._began)
