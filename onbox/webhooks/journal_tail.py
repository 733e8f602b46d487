"""Reading a journal from where one stands, while its agent appends to it."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from pathlib import Path

from boxcar.shared.errors import DamagedError, NewerError
from boxcar.shared.files.journal_chain import LINE_FEED, NO_EVENT, Chain, Event
from boxcar.shared.sentence import _

# Of a journal on the network each time that it is opened is a round trip.
READ_BYTES = 64 * 2**10

# Told of each event that is skipped; None is one that cannot be read.
Seen = Callable[[Event | None], None]


class JournalTail:
    """The journal behind one endpoint's cursor. Each line is read once, when it is complete; no
    more than READ_BYTES of them, and one line, are held.
    """

    def __init__(self, path: Path, count: int, seen: Seen | None = None) -> None:
        """Stands after the first `count` events, of which `seen` is told."""
        self._path = path
        self._offset = 0
        self._chain = Chain()
        self._lines: deque[bytes] = deque()
        if count:
            self._skip(count, seen)

    def next(self, end: int) -> Event | None:
        """The next event, where it is complete and begins before the byte `end`.

        Raises OSError, and DamagedError for a line that is no event or stands in a wrong place.
        """
        if self._offset >= end:
            return None
        if not self._lines:
            self._read(end)
        if not self._lines:
            return None
        event = self._parse(self._lines[0])
        self._offset += len(self._lines.popleft())
        return event

    def _read(self, end: int) -> None:
        """Of a torn line nothing is kept, nor of what is not durable: it may be written anew."""
        offset = self._offset
        with self._path.open("rb") as file:
            file.seek(offset)
            for line in file.readlines(READ_BYTES):
                if offset >= end or not line.endswith(LINE_FEED):
                    break
                self._lines.append(line)
                offset += len(line)

    def _skip(self, count: int, seen: Seen | None) -> None:
        with self._path.open("rb") as file:
            for line in itertools.islice(file, count):
                event = self._taken(line) if seen else None
                if event is None:
                    self._chain.skip(line.removesuffix(LINE_FEED))
                if seen:
                    seen(event)
                self._offset += len(line)

    def _taken(self, line: bytes) -> Event | None:
        """None where it cannot be read: what was sent already keeps nothing from being sent."""
        try:
            return self._chain.take(line.removesuffix(LINE_FEED))
        except (*NO_EVENT, NewerError):
            return None

    def _parse(self, line: bytes) -> Event:
        where = _("{path}: line {line}", path=self._path, line=self._chain.seq + 1)
        try:
            return self._chain.take(line.removesuffix(LINE_FEED))
        except NewerError as error:
            raise NewerError(_("{head}: {text}", head=where, text=error)) from error
        except NO_EVENT as error:
            raise DamagedError(
                _("{where} is damaged ({error})", where=where, error=error)
            ) from error


def count_lines(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(line.endswith(LINE_FEED) for line in file)
