"""Waiting for the end of an attempt: a thread that the kernel wakes, once no process of it is left.

It waits for the wrapper, where the agent started that itself, and then for the lock on the cell's
log, which an adopted attempt has too. It only wakes: whether the attempt is over, the loop looks
for itself, also every TICK_S, for where the thread cannot wait.
"""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

from boxcar.shared.disk import lock


class AttemptEnd:
    def __init__(self, log: Path, child: subprocess.Popen[bytes] | None) -> None:
        self._log, self._child = log, child
        self._news = threading.Event()
        # A daemon: an agent that stops leaves its attempt running.
        threading.Thread(target=self._watch, name="attempt-end", daemon=True).start()

    def wait(self, timeout_s: float) -> None:
        """Return when the wrapper or the attempt ends, each once; at the latest after that time."""
        if self._news.wait(timeout_s):
            self._news.clear()

    def _watch(self) -> None:
        if self._child is not None:
            self._child.wait()
            self._news.set()
        try:
            lock.wait_until_free(self._log)
        except OSError:
            return  # the log is gone, or its disk has no locks: the loop looks
        self._news.set()
