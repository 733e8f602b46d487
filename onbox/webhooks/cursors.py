"""How far each endpoint is, on the disk: `delivered/<queue>.json`, which their threads share."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from boxcar.shared.disk import atomic
from boxcar.shared.files import codec, delivered
from boxcar.shared.files.delivered import Cursor, Delivered


class Cursors:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._delivered = Delivered({})
        self._lock = threading.Lock()
        self._is_closed = False
        self.events = 0  # of the journal, when this began

    def load(self, events: int) -> None:
        """A cursor beyond the journal's `events` is set back: the journal was cut, and goes on."""
        self.events = events
        found = delivered.read(self._path)
        within = {
            key: replace(cursor, seq=min(cursor.seq, events))
            for key, cursor in found.endpoints.items()
        }
        self._delivered = replace(found, endpoints=within)

    def of(self, key: str) -> Cursor:
        return self._delivered.endpoints.get(key, Cursor())

    def is_known(self, key: str) -> bool:
        return key in self._delivered.endpoints

    def put(self, key: str, cursor: Cursor) -> None:
        """Durable when this returns. Raises OSError; the next call then writes both."""
        with self._lock:
            if self._is_closed:
                return
            endpoints = self._delivered.endpoints | {key: cursor}
            self._delivered = replace(self._delivered, endpoints=endpoints)
            atomic.write_whole(self._path, codec.to_document(self._delivered))

    def close(self) -> None:
        """Another process may get the queue's lock now, so a thread that is late writes nothing."""
        with self._lock:
            self._is_closed = True
