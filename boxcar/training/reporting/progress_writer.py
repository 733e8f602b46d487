"""The thread that writes progress lines, so that no step ever waits for a disk or a GPU.

A line is handed over in microseconds. Lines that come close together are written together: to wake
a thread for each would take a twentieth of a short step. Where the disk hangs, lines are kept up to
a limit; what does not fit is dropped and counted, and the next line that is written says how many:
`"dropped": 12`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path

from boxcar.shared.disk import mounts
from boxcar.training.reporting.say import say_once

MOST_WAITING = 1000
# After each write. What comes later than that after the line before it is written at once.
REST_S = 0.1
# At the interpreter's end: a disk that hangs must not keep a finished training alive.
AT_EXIT_S = 5.0

Line = Callable[[int], bytes]


class ProgressWriter:
    """Appends to one file. `line(dropped)` makes the bytes, in the thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # An Event is set once all before it is written.
        self._waiting: queue.Queue[Line | threading.Event] = queue.Queue(MOST_WAITING)
        self._dropped, self._counting = 0, threading.Lock()
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._write, name="boxcar-progress", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def put(self, line: Line) -> None:
        """Hand a line over; never waits, never raises."""
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self._count(1)
        if self._waiting.qsize() > MOST_WAITING // 2:
            self._hurry.set()

    def flush(self, timeout_s: float = AT_EXIT_S) -> bool:
        """Wait until all that was handed over is written; False where that took too long."""
        written = threading.Event()
        try:
            self._waiting.put(written, timeout=timeout_s)
        except queue.Full:
            return False
        self._hurry.set()
        return written.wait(timeout_s)

    def close(self) -> None:
        """Flush; what is put after it is lost with the thread."""
        self.flush()

    def _write(self) -> None:
        while True:
            batch = self._batch()
            lines = [one for one in batch if not isinstance(one, threading.Event)]
            try:
                if data := b"".join(map(self._bytes_of, lines)):
                    _append_whole(self._path, data)
            except OSError as error:
                say_once(f"{self._path}: progress is not written: {error.strerror}")
            for one in batch:
                if isinstance(one, threading.Event):
                    one.set()
            self._hurry.wait(REST_S)
            self._hurry.clear()

    def _batch(self) -> list[Line | threading.Event]:
        """All that waits, at least one."""
        batch = [self._waiting.get()]
        with contextlib.suppress(queue.Empty):
            while True:
                batch.append(self._waiting.get_nowait())
        return batch

    def _bytes_of(self, line: Line) -> bytes:
        try:
            return line(self._take_count())
        # A value that cannot be read (a GPU that failed) must not end the lines after it.
        except Exception as error:
            say_once(f"{self._path}: a progress line was lost: {error}")
            return b""

    def _count(self, dropped: int) -> None:
        with self._counting:
            self._dropped += dropped

    def _take_count(self) -> int:
        with self._counting:
            dropped, self._dropped = self._dropped, 0
            return dropped


def _append_whole(path: Path, lines: bytes) -> None:
    """One write, so that readers never meet half a line; what a full disk cut is taken back."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size_bytes = os.fstat(fd).st_size
        written_bytes = os.write(fd, lines)
        if written_bytes < len(lines):
            os.ftruncate(fd, size_bytes + lines.rfind(b"\n", 0, written_bytes) + 1)
            raise mounts.full_disk_error(str(path))
    finally:
        os.close(fd)
