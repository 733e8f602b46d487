"""One file from its source to the disk: in pieces, resumable, checked, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from boxcar.shared import timestamp
from boxcar.shared.errors import BoxcarError, DamagedError, InputError, TemporaryError
from boxcar.shared.pace import Pace
from boxcar.shared.safe_url import identity_of_url, shown
from boxcar.training.fetch import records, source
from boxcar.training.fetch.records import PartialFile
from boxcar.training.fetch.source import Source
from boxcar.training.reporting.say import size_text

# --- How far it is: one line that moves on a terminal, one every few seconds in a log.


Told = Callable[[int, int, float], None]
EVERY_S = {True: 0.5, False: 5.0}  # on a terminal or where somebody is told, in a log


class ProgressLine:
    """Count with `add` from any thread; within `with` a thread says how far it is, or tells `told`:
    done, total, bytes a second.
    """

    def __init__(self, total_bytes: int, files: int, told: Told | None = None) -> None:
        self.total_bytes, self.files, self._told = total_bytes, files, told
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

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        if sys.stderr.isatty() and not self._told:
            write_progress_line("")

    def _run(self) -> None:
        is_terminal = sys.stderr.isatty()
        while not self._end.wait(EVERY_S[is_terminal or bool(self._told)]):
            done_bytes = self.done_bytes
            rate = self._pace.rate(done_bytes, time.monotonic())
            if self._told:
                self._told(done_bytes, self.total_bytes, rate)
                continue
            text = line(done_bytes, self.total_bytes, rate, self.done_files, self.files)
            write_progress_line(
                f"\r\x1b[K{text}" if is_terminal else text, end="" if is_terminal else "\n"
            )


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
        f"fetch: {size_text(done_bytes)} of {size_text(total_bytes)}{share}, {size_text(rate)}/s, "
        f"{left}, {done_files} of {files} files"
    )


def lasting(left_s: float) -> str:
    minutes, seconds = divmod(round(max(0.0, left_s)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def write_progress_line(text: str, end: str = "\n") -> None:
    # A closed terminal or a full log disk is no reason to stop fetching.
    with contextlib.suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)


RETRY_AFTER_S = (1.0, 2.0, 4.0, 8.0, 16.0)
_T = TypeVar("_T")


class Download:
    """`jobs` once, each of them from any thread; the last that ends gives the file its name."""

    def __init__(
        self,
        found: Source,
        target: Path,
        sha256: str | None,
        progress: ProgressLine,
        stop: threading.Event,
    ) -> None:
        self.source, self.target = found, target
        self._sha256, self._progress, self._stop = sha256, progress, stop
        # Without ranges the file comes in one go, and grows as it comes.
        self.part = PartialFile(target, found.identity, (found.size_bytes or 0) * found.has_ranges)

    def jobs(self) -> list[Callable[[], None]]:
        """What is still to do, a job for each piece that is missing.

        Each raises TemporaryError where the source stays away, NoRoomError, DamagedError where
        what came is not the file, OSError of this disk. Raises InputError where nothing would
        prove the end.
        """
        if self.source.size_bytes is None and self._sha256 is None:
            raise InputError(
                f"{shown(self.source.url)}: its source does not say its size; give the sha256 of "
                f"{self.target.name}, so that a truncated file is noticed"
            )
        # Without a version, only the digest can tell that two halves are of one file.
        self.part.open(may_resume=bool(self.source.version or self._sha256))
        self._progress.add(self.part.done_bytes)
        if not self.source.has_ranges:
            return [self._bring_whole]
        missing = self.part.missing
        return [partial(self._bring, index) for index in missing] or [self.finish]

    def _bring(self, index: int) -> None:
        start, end = self.part.bounds(index)
        data = self._patiently(lambda: source.read_range(self.source, start, end))
        self.part.write(data, start)
        self._progress.add(len(data))
        if self.part.mark(index):
            self.finish()

    def _bring_whole(self) -> None:
        self._patiently(self._stream)
        self.finish()

    def finish(self) -> None:
        """Check the whole and give it its name. Raises DamagedError, TemporaryError."""
        self.part.save()
        stat, sums = self.part.path.stat(), records.digests(self.part.path)
        checked_by, problem = self._judge(stat.st_size, sums)
        if problem:
            records.drop_part(self.target)
            raise DamagedError(
                f"{self.target.name} from {shown(self.source.url)}: {problem}; nothing was kept"
            )
        self._see_that_it_is_unchanged()
        receipt = records.Receipt(
            url=shown(self.source.url),
            place=identity_of_url(self.source.url),
            size_bytes=stat.st_size,
            mtime_ns=stat.st_mtime_ns,
            sha256=sums["sha256"],
            checked_by=checked_by,
            version=self.source.version,
            fetched_at=timestamp.utc_now(),
        )
        records.give_name(self.target, receipt)
        self._progress.add_file()

    def _judge(self, size_bytes: int, sums: dict[str, str]) -> tuple[str, str]:
        """What was compared, and what contradicts (or nothing)."""
        expected_bytes = self.source.size_bytes
        if expected_bytes not in (None, size_bytes):
            return "size", f"{size_bytes} bytes came, expected {expected_bytes}"
        if self._sha256:
            return "sha256", _difference("sha256", sums, self._sha256)
        if self.source.checksum is None:
            return "size", ""
        algorithm, stated = self.source.checksum
        if problem := _difference(algorithm, sums, stated):
            problem += (
                " (a store that encrypts states no checksum of the content: then put the sha256 "
                f"of {self.target.name} into the spec; what came has {sums['sha256']})"
            )
        return algorithm, problem

    def _see_that_it_is_unchanged(self) -> None:
        """Halves of two versions have the right size too."""
        now = source.look_at_source(self.source.url, self.source.token)
        if now is None or now.identity != self.source.identity:
            records.drop_part(self.target)
            raise TemporaryError(
                f"{shown(self.source.url)}: changed while it was fetched; nothing of it was kept, "
                "the same line fetches what is there now"
            )

    def _stream(self) -> None:
        os.truncate(self.part.path, 0)
        start = 0
        try:
            for block in source.stream(self.source):
                self.part.write(block, start)
                start += len(block)
                self._progress.add(len(block))
            if self.source.size_bytes not in (None, start):
                raise OSError(f"{start} bytes came of {self.source.size_bytes}")
        except BaseException:
            self._progress.add(-start)
            raise

    def _patiently(self, read: Callable[[], _T]) -> _T:
        """What `read` gives, asked again a few times: networks cut, stores are busy."""
        for wait_s in (*RETRY_AFTER_S, 0.0):
            try:
                return read()
            except BoxcarError:
                raise
            except Exception as error:
                last = error
            is_final = isinstance(last, (FileNotFoundError, PermissionError))
            if is_final or self._stop.wait(wait_s):
                break
        said = shown(str(last)) or type(last).__name__
        raise TemporaryError(
            f"{shown(self.source.url)}: could not be read to its end: {said}; "
            "what has arrived is kept; the same command resumes"
        ) from last


def _difference(algorithm: str, sums: dict[str, str], expected: str) -> str:
    found = sums[algorithm]
    return "" if found == expected else f"{algorithm} {found} came, expected {expected}"
