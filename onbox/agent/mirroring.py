"""The mirror of a cell's live checkpoint, in a thread of its own: no end of a cell waits for it.

Once the cell has succeeded the copy under way is given up; the result is what counts then. Whoever
removes what was mirrored waits until nothing is written there any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from boxcar.shared.errors import BoxcarError
from onbox.cell.live_checkpoint import Mirror

# Longer than that nobody waits for a checkpoint that may be due.
LOOK_EVERY_S = 1.0
_SHORTEST_S = 0.05


class GivenUp(Exception):
    """The copy is not needed any more."""


class Mirroring:
    def __init__(self, mirror: Mirror, fail: Callable[[Exception], None]) -> None:
        """`fail` hears of a copy that could not be made: that costs the mirror, not the cell."""
        self._mirror, self._fail = mirror, fail
        self._is_over = threading.Event()
        self._is_given_up = False
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self._thread.start()

    def flush(self, tick: Callable[[], None], every_s: float) -> None:
        """Mirror the newest checkpoint, after the copy under way. `tick` is called meanwhile."""
        while not self._turn.acquire(timeout=every_s):
            tick()
        try:
            self._do(lambda: self._mirror.flush(lambda size_bytes: tick()))
        finally:
            self._turn.release()

    def finish(self, tick: Callable[[], None], every_s: float) -> None:
        """The last copy is that under way, which is waited for."""
        self._is_over.set()
        while self._thread.is_alive():
            self._thread.join(every_s)
            tick()

    def give_up(self) -> None:
        """Without waiting: the copy under way ends at its next block."""
        self._is_given_up = True
        self._is_over.set()

    def wait(self) -> None:
        """Until nothing is written any more; after one of the two above."""
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(min(LOOK_EVERY_S, max(_SHORTEST_S, self._mirror.due_in_s))):
            with self._turn:
                self._do(lambda: self._mirror.tick(self._on_chunk))

    def _on_chunk(self, size_bytes: int) -> None:
        if self._is_given_up:
            raise GivenUp

    def _do(self, act: Callable[[], None]) -> None:
        try:
            act()
        except GivenUp:
            return
        except (BoxcarError, OSError) as error:
            if not self._is_given_up:
                self._fail(error)
