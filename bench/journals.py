"""Reading and replaying a long journal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row
from boxcar.shared import state
from boxcar.shared.files import journal, journal_chain
from boxcar.shared.files.journal_chain import Event

EVENTS = 100_000


def measure(folder: Path) -> list[Row]:
    path = folder / "queue.jsonl"
    path.write_bytes(b"".join(_lines()))
    began = time.monotonic()
    events = journal.read_journal(path).events
    read_s = time.monotonic() - began
    began = time.monotonic()
    state.replay(events)
    return [
        Row(f"read {EVENTS} events", read_s, "s"),
        Row(f"replay {EVENTS} events", time.monotonic() - began, "s", 1, "limit"),
    ]


def _lines() -> Iterator[bytes]:
    before = journal_chain.OF_NOTHING
    for seq in range(1, EVENTS + 1):
        line = _event(seq).to_line(before)
        before = Event.check_of(line)
        yield line


def _event(seq: int) -> Event:
    cell = f"cell_{seq % 50}"
    data = {"run": "bench", "queue": "queue", "box": "box-a", "cell": cell, "attempt": 1}
    types = ("cell.started", "cell.progress", "cell.progress", "cell.succeeded")
    more = {"progress": {"step": seq, "loss": 0.5}, "seconds": 1.0}
    return Event(seq, f"evt_{seq}", "2026-11-21T02:00:00.000Z", types[seq % 4], data | more)
