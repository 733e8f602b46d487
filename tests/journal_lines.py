"""Lines of a journal for the tests: in their chain, and as version 1 spelled them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from boxcar.shared.files import journal_chain
from boxcar.shared.files.journal_chain import Event

COMMON = {"run": "r", "queue": "q1", "box": "box-a"}


def events(count: int, first: int = 1) -> list[Event]:
    at = "2026-11-20T10:00:00.000Z"
    return [
        Event(seq, f"evt_{seq}", at, "cell.claimed", COMMON | {"cell": f"c{seq}"})
        for seq in range(first, first + count)
    ]


def chained(events: Iterable[Event], before: str = journal_chain.OF_NOTHING) -> bytes:
    """The lines of these events, after what has the check `before`."""
    lines = b""
    for event in events:
        line = event.to_line(before)
        before = Event.check_of(line)
        lines += line
    return lines


def v1_lines(events: Iterable[Event]) -> bytes:
    return b"".join(_v1_line(event) for event in events)


def _v1_line(event: Event) -> bytes:
    head = {"v": 1, "seq": event.seq, "id": event.id, "at": event.at, "type": event.type}
    record = head | {"data": event.data} | event.extra
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
