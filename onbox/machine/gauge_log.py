"""What a box had left, written down: a line a minute on the tier, and the last minutes on scratch.

The line is for people and pictures, and nothing is decided by it. The ring holds the last ten
minutes at five seconds in a file of fixed slots, each written in place: after a crash of the agent
it tells what came before, and a cell that fails keeps it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic

LINE_EVERY_S = 60.0
MOST_BYTES = 5_000_000
SLOTS, SLOT_BYTES = 120, 4096

Reading = Mapping[str, Any]


class GaugeLog:
    """`file` on the tier, `ring` on scratch; a disk that fails for a moment costs a line."""

    def __init__(self, file: Path, ring: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._ring, self._clock = file, ring, clock
        self._minute: list[Reading] = []
        self._next_line_s = clock() + LINE_EVERY_S
        self._slot = 0

    def take(self, gauges: Reading, steps: Mapping[str, Any]) -> None:
        """One reading; `steps`: how far each cell is that runs."""
        reading = {"at": timestamp.utc_now(), **gauges, **({"steps": steps} if steps else {})}
        self._minute.append(reading)
        with contextlib.suppress(OSError):
            write_slot(self._ring, self._slot, reading)
        self._slot = (self._slot + 1) % SLOTS
        if self._clock() >= self._next_line_s:
            self._next_line_s = self._clock() + LINE_EVERY_S
            line, self._minute = minute_of(self._minute), []
            with contextlib.suppress(OSError):
                _append(self._file, line)

    def keep_ring(self, at: Path) -> None:
        """The last minutes, as lines in their order. Raises OSError."""
        lines = read_ring(self._ring)
        if lines:
            atomic.make_folder(at.parent)
            atomic.write_whole(at, b"".join(map(_spelled, lines)))


def minute_of(readings: Sequence[Reading]) -> dict[str, Any]:
    """The last reading, with the most memory of the minute, and each card's mean use."""
    line = dict(readings[-1])
    for name in ("memory_used_bytes", "memory_cache_bytes"):
        if told := [one[name] for one in readings if name in one]:
            line[name] = max(told)
    if cards := line.get("gpus"):
        line["gpus"] = [_card(index, card, readings) for index, card in enumerate(cards)]
    return line


def _card(index: int, card: Reading, readings: Sequence[Reading]) -> dict[str, Any]:
    seen = [one["gpus"][index] for one in readings if len(one.get("gpus", ())) > index]
    used = [one["utilization_percent"] for one in seen if "utilization_percent" in one]
    fixed = ("name", "uuid", "driver", "mig", "memory_total_bytes")
    found = {key: value for key, value in card.items() if key not in fixed}
    return found | ({"utilization_percent": round(sum(used) / len(used))} if used else {})


def write_slot(ring: Path, slot: int, reading: Reading) -> None:
    """In place, so that no crash leaves more than one torn slot. Raises OSError."""
    line = _spelled(reading)
    if len(line) > SLOT_BYTES:  # many cards
        line = _spelled({key: value for key, value in reading.items() if key != "gpus"})
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(ring, flags, 0o644)
    try:
        os.pwrite(fd, line[:SLOT_BYTES].ljust(SLOT_BYTES, b"\n"), slot * SLOT_BYTES)
    finally:
        os.close(fd)


def read_ring(ring: Path) -> list[dict[str, Any]]:
    """Oldest first; a torn slot is left out, and a file that is not there holds none."""
    try:
        data = ring.read_bytes()[: SLOTS * SLOT_BYTES]
    except OSError:
        return []
    slots = (data[at : at + SLOT_BYTES] for at in range(0, len(data), SLOT_BYTES))
    found = [one for slot in slots if (one := _parsed(slot.partition(b"\n")[0]))]
    return sorted(found, key=lambda one: str(one["at"]))


def _parsed(line: bytes) -> dict[str, Any] | None:
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        found = json.loads(line)
        timestamp.parse_utc(found["at"])
        return dict(found)
    return None


def _spelled(reading: Reading) -> bytes:
    return json.dumps(reading, separators=(",", ":")).encode() + b"\n"


def _append(file: Path, line: Reading) -> None:
    """A file that has grown too large keeps its newer half."""
    spelled = _spelled(line)
    atomic.make_folder(file.parent)
    size_bytes = file.stat().st_size if file.exists() else 0
    if size_bytes + len(spelled) > MOST_BYTES:
        kept = file.read_bytes()[-MOST_BYTES // 2 :].partition(b"\n")[2]
        atomic.write_whole(file, kept + spelled)
        return
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        os.write(fd, spelled)
    finally:
        os.close(fd)
