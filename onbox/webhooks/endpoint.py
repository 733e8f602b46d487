"""What every endpoint has: its thread, its cursor, its waits, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, delivered
from boxcar.shared.files.delivered import Cursor, Delivered

JOURNAL_AGAIN_S = 30.0

# Waits for a signal, at most so many seconds; tests replace it to see how long it would take.
Wait = Callable[[threading.Event, float], bool]


class Endpoint:
    """One thread that sends to one endpoint until it is told to stop."""

    def __init__(self, key: str, path: Path, cursors: Cursors, wait: Wait) -> None:
        self.key = key
        self.problem: str | None = None
        self.thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._path = path
        self._cursors = cursors
        self._wait = wait
        self._end = 0
        self._deadline = 0.0
        self._woken, self._closing, self._stopped = (threading.Event() for _ in range(3))

    def wake(self, end: int) -> None:
        self._end = end
        self._woken.set()

    def close(self, deadline: float) -> None:
        self._deadline = deadline
        self._closing.set()
        self._woken.set()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        is_on = True
        while is_on:
            try:
                self._follow()
                is_on = False
            except OSError as error:
                self.problem = f"the journal cannot be read: {error}"
                is_on = self._back_off(JOURNAL_AGAIN_S)
            except DamagedError as error:
                self.problem = str(error)
                is_on = False

    @property
    def channel(self) -> str | None:
        """The chat service; None for a webhook."""
        return None

    @property
    def refusal(self) -> str | None:
        """What a person should know of it, said once; None where there is nothing."""
        return None

    def _follow(self) -> None:
        """Send what comes until the end. Raises OSError, DamagedError."""
        raise NotImplementedError

    def _back_off(self, wait_s: float) -> bool:
        """Wait before the next try; False where the end comes before it."""
        if not self._closing.is_set():
            self._wait(self._closing, wait_s)
            return True
        has_time = time.monotonic() + wait_s < self._deadline
        return has_time and not self._wait(self._stopped, wait_s)

    def _put(self, **changes: Any) -> None:
        try:
            self._cursors.put(self.key, replace(self._cursors.of(self.key), **changes))
        except OSError as error:
            # After a restart the event is sent again, with its id: at least once still holds.
            self.problem = f"the cursor was not written: {error}"


# --- How far each endpoint is, on the disk: `delivered/<queue>.json`, which their threads share.


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
