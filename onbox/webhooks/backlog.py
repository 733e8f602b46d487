"""How many events the endpoints have still to take; a journal is read once, as it grows."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path

from boxcar.shared.files.delivered import Cursor
from boxcar.shared.news.wanted import is_told
from onbox.webhooks.journal_tail import JournalTail


class Backlog:
    """Of each endpoint the numbers of the events that wait for it, and nothing else of them."""

    def __init__(self, path: Path, channels: Mapping[str, str | None]) -> None:
        """`channels`: of each endpoint, by its key, the chat service; None for a webhook."""
        self._path = path
        self._channels = channels
        self._tail = JournalTail(path, 0)
        self._waiting: dict[str, deque[int]] = {key: deque() for key in channels}

    def left(self, cursors: Mapping[str, Cursor]) -> int:
        """Over all endpoints that are not switched off. Raises OSError, DamagedError."""
        end = self._path.stat().st_size if self._path.exists() else 0
        while (event := self._tail.next(end)) is not None:
            for key, channel in self._channels.items():
                if event.seq > cursors[key].seq and is_told(channel, event):
                    self._waiting[key].append(event.seq)
        return sum(self._of(key, cursors[key]) for key in self._channels)

    def _of(self, key: str, cursor: Cursor) -> int:
        waiting = self._waiting[key]
        while waiting and waiting[0] <= cursor.seq:
            waiting.popleft()
        return 0 if cursor.disabled else len(waiting)
