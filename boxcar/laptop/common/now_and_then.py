"""A line now and then, where the output is no terminal: for what takes longer than a moment."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

FIRST_S, EVERY_S = 10.0, 20.0


class NowAndThen:
    """From `start` to `stop` a thread tells the line that there is; both may come again."""

    def __init__(self, line: Callable[[], str | None], tell: Callable[[str], None]) -> None:
        self._line, self._tell = line, tell
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        wait_s = FIRST_S
        while not self._end.wait(wait_s):
            wait_s = EVERY_S
            # A log that nobody can write to is no reason to end what is under way.
            with contextlib.suppress(OSError):
                if line := self._line():
                    self._tell(line)
