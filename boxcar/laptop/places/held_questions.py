"""Questions that boxes hold until they have news: one for each box, in a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from boxcar.shared.errors import BoxcarError


class HeldQuestions:
    """For one thread. Nobody has to take an answer: that a box holds its question no more is the
    news, also where the line was cut.
    """

    def __init__(self) -> None:
        self._threads: dict[str, threading.Thread] = {}

    def put(self, box: str, ask: Callable[[], object]) -> None:
        """`ask` waits for the box. Where that holds a question already, none is put."""
        if self.is_held(box):
            return

        def wait() -> None:
            with contextlib.suppress(BoxcarError, OSError):  # the look that follows says why
                ask()

        # A daemon: a person who leaves does not wait for a box.
        self._threads[box] = threading.Thread(target=wait, daemon=True)
        self._threads[box].start()

    def is_held(self, box: str) -> bool:
        return box in self._threads and self._threads[box].is_alive()
