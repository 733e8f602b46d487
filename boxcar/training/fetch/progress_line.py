"""How far it is: one line that moves on a terminal, one every few seconds in a log."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from types import TracebackType

from boxcar.shared.pace import Pace

EVERY_S = {True: 0.5, False: 5.0}  # on a terminal, in a log


class ProgressLine:
    """Count with `add` from any thread; within `with` a thread says how far it is."""

    def __init__(self, total_bytes: int, files: int) -> None:
        self.total_bytes, self.files = total_bytes, files
        self.done_bytes = self.done_files = 0
        self._lock, self._end = threading.Lock(), threading.Event()
        self._pace = Pace(time.monotonic())
        self._thread = threading.Thread(target=self._run, name="fetch-progress", daemon=True)

    def add(self, size_bytes: int) -> None:
        with self._lock:
            self.done_bytes += size_bytes

    def add_file(self) -> None:
        with self._lock:
            self.done_files += 1

    def __enter__(self) -> ProgressLine:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()
        if sys.stderr.isatty():
            say("")

    def _run(self) -> None:
        is_terminal = sys.stderr.isatty()
        while not self._end.wait(EVERY_S[is_terminal]):
            done_bytes = self.done_bytes
            rate = self._pace.rate(done_bytes, time.monotonic())
            text = line(done_bytes, self.total_bytes, rate, self.done_files, self.files)
            say(f"\r\x1b[K{text}" if is_terminal else text, end="" if is_terminal else "\n")


def line(done_bytes: int, total_bytes: int, rate: float, done_files: int, files: int) -> str:
    """`fetch: 1.20 of 6.51 GB (18 %), 85.0 MB/s, 1 min 2 s left, 1 of 6 files`; pure.

    `rate` in bytes a second; 0 where nothing came lately.
    """
    share = f" ({100 * done_bytes // total_bytes} %)" if total_bytes else ""
    if total_bytes and done_bytes >= total_bytes:
        left = "checking"
    else:
        left = f"{lasting((total_bytes - done_bytes) / rate)} left" if rate > 0 else "stalled"
    return (
        f"fetch: {size(done_bytes)} of {size(total_bytes)}{share}, {size(rate)}/s, {left}, "
        f"{done_files} of {files} files"
    )


def size(size_bytes: float) -> str:
    """Three digits and a unit, in thousands as networks count."""
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 999.5:
            return f"{size_bytes:.3g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.3g} TB"


def lasting(left_s: float) -> str:
    minutes, seconds = divmod(round(max(0.0, left_s)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def say(text: str, end: str = "\n") -> None:
    # A closed terminal or a full log disk is no reason to stop fetching.
    with contextlib.suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)
