"""The journal of one queue: every event, append-only; the one truth about what happened.

One JSON object a line. Its agent writes it, holding the queue's lock; everybody reads it. It is
the webhooks' outbox too: `data` is sent as it stands, with the event's id on every try.

A last line without its line feed was torn by a crash: it never happened, and this is said. A bad
line before that is damage: reading stops with its number, and the file is kept as it is.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import DamagedError, TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.message import Command

VERSION = 1
# What reading a line raises where it is no event.
NO_EVENT = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_KINDS = {"seq": int, "id": str, "at": str, "type": str, "data": dict}
# What webhooks carry; the other types are the journal's own.
PUBLIC_TYPES = frozenset(
    {
        "agent.started",
        "agent.stopped",
        "box.audit",
        "box.warning",
        "cell.failed",
        "cell.progress",
        "cell.retried",
        "cell.started",
        "cell.synced",
        "cell.verified",
        "queue.done",
        "queue.started",
        "queue.stopped",
    }
)


@dataclass(frozen=True)
class Event:
    """`seq` counts from 1 without a gap; `data` always holds run, queue and box, mostly cell."""

    seq: int
    id: str
    at: str
    type: str
    data: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def cell(self) -> str | None:
        return self.data.get("cell")

    def to_line(self) -> bytes:
        head = {"v": VERSION, "seq": self.seq, "id": self.id, "at": self.at, "type": self.type}
        record = head | {"data": self.data} | self.extra
        spelled = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        # Half a surrogate pair, from a log that is no UTF-8, is written as JSON's escape of it.
        return f"{spelled}\n".encode(errors="backslashreplace")


@dataclass(frozen=True)
class Reading:
    """The events of a file, and the bytes of a torn last line (empty where there was none)."""

    events: tuple[Event, ...]
    torn: bytes = b""


def read(path: Path) -> Reading:
    """Every event of a journal; a missing file has none. Raises DamagedError for a bad line."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Reading(())
    return parse(data, str(path))


def parse(data: bytes, where: str) -> Reading:
    complete, has_lines, torn = data.rpartition(b"\n")
    lines = complete.split(b"\n") if has_lines else []
    return Reading(tuple(_parse_lines(lines, where)), torn)


def _parse_lines(lines: list[bytes], where: str) -> Iterator[Event]:
    for number, line in enumerate(lines, start=1):
        try:
            event = parse_event(line)
            if event.seq != number:
                raise ValueError(f"event {event.seq} is in the place of event {number}")
        except NO_EVENT as error:
            raise DamagedError(
                f"{where}: line {number} is damaged ({error}). The file is kept as it is; lines "
                "before it are good. Restore that line from a copy, or ask before you remove it."
            ) from error
        yield event


def parse_event(line: bytes) -> Event:
    """One line of a journal. Raises one of NO_EVENT for what is none."""
    # As UTF-8: from bytes the library would take UTF-16 too.
    record = json.loads(line.decode())
    version = record.pop("v")
    if version != VERSION:
        raise ValueError(f"version {version!r} is not {VERSION}")
    known = {name: record.pop(name) for name in ("seq", "id", "at", "type", "data")}
    for name, kind in _KINDS.items():
        if type(known[name]) is not kind:
            raise TypeError(f"{name} is {known[name]!r}")
    timestamp.parse_utc(known["at"])
    return Event(**known, extra=record)


class Journal:
    """The writer, under the queue's lock. `append` returns when the event is durable."""

    def __init__(self, path: Path, common: dict[str, Any], held: int | None = None) -> None:
        """Opens or creates the journal; a torn last line is put aside, see `torn_file`.

        `common` (run, queue, box) goes into every event's data. `held` is the descriptor of the
        queue's lock, which is looked at before each event. Raises DamagedError.
        """
        self.path = path
        self._held = held
        self.torn_file: Path | None = None
        self._common = common
        reading = read(path)
        if reading.torn:
            self.torn_file = self._put_torn_line_aside(reading)
        self.events = list(reading.events)
        self._size_bytes = _size_bytes(path)

    def append(self, type: str, **data: Any) -> Event:
        """Raises OSError, and TemporaryError where another agent writes this journal by now."""
        if self._held is not None:
            self._refuse_second_writer(self._held)
        event = Event(
            seq=len(self.events) + 1,
            id=f"evt_{uuid.uuid4().hex}",
            at=timestamp.utc_now(),
            type=type,
            data=codec.finite(self._common | {k: v for k, v in data.items() if v is not None}),
        )
        line = event.to_line()
        atomic.append(self.path, line)
        self._size_bytes += len(line)
        self.events.append(event)
        return event

    def _refuse_second_writer(self, held: int) -> None:
        """Who came while the lock was lost may have gone again, and left events."""
        if self.events and not self.path.exists():
            raise TemporaryError(
                f"{self.path}: this queue's journal is not there any more, and nothing was "
                "written. The durable tier seems to be unmounted: mount it again, then",
                Command("launch"),
            )
        if not lock.keep(held) or _size_bytes(self.path) != self._size_bytes:
            raise TemporaryError(
                f"{self.path}: another agent has taken this queue over while the durable tier was "
                "out of reach from here; nothing was written. See where it runs",
                Command("status"),
            )

    def _put_torn_line_aside(self, reading: Reading) -> Path:
        aside = self.path.with_name(f"{self.path.name}.torn-{len(reading.events) + 1}")
        atomic.write_whole(aside, reading.torn)
        size_bytes = self.path.stat().st_size - len(reading.torn)
        fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size_bytes)
            os.fsync(fd)
        finally:
            os.close(fd)
        return aside


def _size_bytes(path: Path) -> int:
    """Opened for it: what NFS remembers of a size may be old until then."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        return os.fstat(fd).st_size
    finally:
        os.close(fd)
