"""The thread that writes progress lines, so that no step ever waits for a disk or a GPU.

A line is handed over in microseconds. Where the disk hangs, lines are kept up to a limit; what does
not fit is dropped and counted, and the next line that is written says how many: `"dropped": 12`.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path

from boxcar.shared.disk import full
from boxcar.training.say import say_once

MOST_WAITING = 1000
# At the interpreter's end: a disk that hangs must not keep a finished training alive.
AT_EXIT_S = 5.0

Line = Callable[[int], bytes]


class ProgressWriter:
    """Appends to one file. `line(dropped)` makes the bytes, in the thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: queue.Queue[Line] = queue.Queue(MOST_WAITING)
        self._dropped, self._counting = 0, threading.Lock()
        self._thread = threading.Thread(target=self._write, name="boxcar-progress", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def put(self, line: Line) -> None:
        """Hand a line over; never waits, never raises."""
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self._count(1)

    def flush(self, timeout_s: float = AT_EXIT_S) -> bool:
        """Wait until all that was handed over is written; False where that took too long."""
        written = threading.Event()

        def mark(_: int) -> bytes:
            written.set()
            return b""

        try:
            self._waiting.put(mark, timeout=timeout_s)
        except queue.Full:
            return False
        return written.wait(timeout_s)

    def close(self) -> None:
        """Flush; what is put after it is lost with the thread."""
        self.flush()

    def _write(self) -> None:
        while True:
            line = self._waiting.get()
            dropped = self._take_count()
            try:
                data = line(dropped)
                if data:
                    _append_whole(self._path, data)
                else:
                    self._count(dropped)
            except OSError as error:
                say_once(f"{self._path}: progress is not written: {error.strerror}")
            # A value that cannot be read (a GPU that failed) must not end the lines after it.
            except Exception as error:
                say_once(f"{self._path}: a progress line was lost: {error}")

    def _count(self, dropped: int) -> None:
        with self._counting:
            self._dropped += dropped

    def _take_count(self) -> int:
        with self._counting:
            dropped, self._dropped = self._dropped, 0
            return dropped


def _append_whole(path: Path, line: bytes) -> None:
    """One write, so that readers never meet half a line; what a full disk cut is taken back."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size_bytes = os.fstat(fd).st_size
        if os.write(fd, line) < len(line):
            os.ftruncate(fd, size_bytes)
            raise full.of_writing(str(path))
    finally:
        os.close(fd)
