"""What a running cell's log and files seem to say, for the heartbeat: read by a thread, so that the
agent's loop never waits for a disk.
"""

from __future__ import annotations

import csv
import math
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from boxcar.shared.disk import regular_file
from boxcar.shared.files import attempt, progress
from boxcar.shared.files.heartbeat import Seen
from boxcar.shared.metrics import records, result_files, tfevents
from boxcar.shared.metrics.seen_in_log import (
    LONGEST_NAME,
    MOST_BYTES,
    MOST_NUMBERS,
    LogReader,
    is_measure,
    place,
)
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.record import replace

EVERY_S = 10.0
_MOST_FILES, _DEPTH = 500, 4
_HEAD_BYTES, _TAIL_BYTES, _MOST_EVENTS = 4096, 16 * 1024, 5000
_ROWS = (".csv", ".tsv", ".jsonl")


class SeenInCell:
    """Of the attempts that run; `seen` returns at once."""

    def __init__(self, scratch: ScratchPaths) -> None:
        self._scratch = scratch
        self._looks: dict[str, _Look] = {}
        self._thread: threading.Thread | None = None

    def seen(self, cell: str, number: int | None) -> Seen | None:
        """What is known by now; None where nothing is."""
        look = self._looks.get(cell)
        if look is None or look.number != number:
            look = self._looks[cell] = _Look(self._scratch, cell, number)
        now = time.monotonic()
        if now >= look.next_at and not (self._thread and self._thread.is_alive()):
            look.next_at = now + EVERY_S
            self._thread = threading.Thread(target=look.again, daemon=True)
            self._thread.start()
        return look.seen

    def forget(self, cell: str) -> None:
        """It does not run any more."""
        self._looks.pop(cell, None)


class _Look:
    def __init__(self, scratch: ScratchPaths, cell: str, number: int | None) -> None:
        self.number, self.next_at = number, 0.0
        self.seen: Seen | None = None
        self._scratch, self._cell = scratch, cell
        self._reader, self._files = LogReader(), _Files(scratch.out(cell), time.time())
        self._read_bytes = -1

    def again(self) -> None:
        try:
            data, is_cut = self._new_of_log()
            found = self._reader.feed(data, time.monotonic(), is_cut=is_cut)
            if not found.numbers:
                found = _with(found, self._files.look())
        except (OSError, ValueError, ArithmeticError, RecursionError, csv.Error):
            return  # a guess is worth no warning
        self.seen = found if found != Seen() else None

    def _new_of_log(self) -> tuple[bytes, bool]:
        """Of what is new the last part, and whether something before it is left out."""
        with regular_file.open_at(self._scratch.log(self._cell)) as log:
            size_bytes = log.seek(0, os.SEEK_END)
            if not 0 <= self._read_bytes <= size_bytes:
                running = attempt.read_running(self._scratch.running(self._cell))
                if running and running.attempt != self.number:
                    return b"", False  # until it begins, the log is that of the attempt before
                begins_at_bytes = running.log_begins_at_bytes if running else 0
                self._read_bytes = min(size_bytes, begins_at_bytes)
            begins_at = max(self._read_bytes, size_bytes - MOST_BYTES)
            is_cut, self._read_bytes = begins_at > self._read_bytes, size_bytes
            log.seek(begins_at)
            return log.read(size_bytes - begins_at), is_cut


def _with(found: Seen, more: Seen) -> Seen:
    """With the numbers of a file, and its counts where the log has none."""
    if found.epoch is None and found.step is None:
        found = replace(found, epoch=more.epoch, step=more.step)
    return replace(found, numbers=more.numbers)


class _Files:
    """The one below {out} that was written to last."""

    def __init__(self, out: Path, since_s: float) -> None:
        self._out, self._since_s = out, since_s
        self._events: dict[str, tuple[int, dict[str, float], int | None]] = {}

    def look(self) -> Seen:
        for _at, path in sorted(_growing(self._out, self._since_s), reverse=True)[:3]:
            with regular_file.open_left(self._out, path) as file:
                if result_files.is_of_events(path):
                    begins_at, last, step = self._events.get(path, (0, {}, None))
                    for one in tfevents.scalars(file, begins_at, _MOST_EVENTS):
                        last[one.tag], step = one.value, max(step or 0, one.step)
                    self._events = {path: (file.tell(), last, step)}
                    found = Seen(step=step, numbers=_told(last))
                else:
                    found = _of_rows(path, file.read(_HEAD_BYTES), _tail(file))
            if found.numbers:
                return found
        return Seen()


def _growing(out: Path, since_s: float) -> Iterator[tuple[float, str]]:
    """Files that may have results, with when they were written to."""
    left, folders = _MOST_FILES, [(out, 0)]
    while folders and left > 0:
        folder, depth = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return
                if entry.is_dir(follow_symlinks=False) and depth < _DEPTH:
                    folders.append((Path(entry.path), depth + 1))
                elif _is_wanted(entry.name) and (at := entry.stat().st_mtime) >= since_s:
                    yield at, str(Path(entry.path).relative_to(out))


def _is_wanted(name: str) -> bool:
    is_known = name.lower().endswith(_ROWS) or result_files.is_of_events(name)
    return is_known and name != progress.FILE and result_files.may_be_one(name)


def _tail(file: BinaryIO) -> bytes:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
    return file.read(_TAIL_BYTES)


def _of_rows(path: str, head: bytes, tail: bytes) -> Seen:
    """Of the last whole rows: some loggers fill another part of each."""
    names, whole = head.partition(b"\n")[0], tail.rpartition(b"\n")[0].split(b"\n")
    if path.lower().endswith(".jsonl"):
        rows = records.of_lines(b"\n".join(whole[-20:]))
    else:
        rows = records.of_csv(b"\n".join([names, *whole[1:][-20:]]))
    last = {key: value for row in rows for key, value in row.items()}
    numbers = {key: found for key, v in last.items() if (found := records.number(v)) is not None}
    epoch, axis = numbers.get("epoch"), records.axis_of([numbers])
    step = int(numbers[axis]) if axis and axis != "epoch" else None
    measured = _told({key: value for key, value in numbers.items() if is_measure(key)})
    return Seen(epoch=epoch, step=step, numbers=measured)


def _told(numbers: dict[str, float]) -> dict[str, float | None]:
    """None of a NaN."""
    named = sorted(numbers, key=place)[:MOST_NUMBERS]
    return {
        key[:LONGEST_NAME]: numbers[key] if math.isfinite(numbers[key]) else None for key in named
    }
