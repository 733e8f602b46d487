"""Reading a journal from where one stands, while its agent appends to it."""

from __future__ import annotations

import itertools
from pathlib import Path

from boxcar.shared.errors import DamagedError, NewerError
from boxcar.shared.files.journal_chain import LINE_FEED, NO_EVENT, Chain, Event


class JournalTail:
    """The journal behind one endpoint's cursor. Each line is read once, when it is complete."""

    def __init__(self, path: Path, count: int) -> None:
        """Stands after the first `count` events."""
        self._path = path
        self._offset = 0
        self._chain = Chain()
        if count:
            self._skip(count)

    def next(self, end: int) -> Event | None:
        """The next event, where it is complete and begins before the byte `end`.

        Raises OSError, and DamagedError for a line that is no event or stands in a wrong place.
        """
        if self._offset >= end:
            return None
        with self._path.open("rb") as file:
            file.seek(self._offset)
            line = file.readline()
        if not line.endswith(LINE_FEED):
            return None
        event = self._parse(line)
        self._offset += len(line)
        return event

    def _skip(self, count: int) -> None:
        with self._path.open("rb") as file:
            for line in itertools.islice(file, count):
                self._chain.skip(line.removesuffix(LINE_FEED))
                self._offset += len(line)

    def _parse(self, line: bytes) -> Event:
        where = f"{self._path}: line {self._chain.seq + 1}"
        try:
            return self._chain.take(line.removesuffix(LINE_FEED))
        except NewerError as error:
            raise NewerError(f"{where}: {error}") from error
        except NO_EVENT as error:
            raise DamagedError(f"{where} is damaged ({error})") from error


def count_lines(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(line.endswith(LINE_FEED) for line in file)
