"""Sends the journal's public events to the webhooks: at least once, in order, one id on every try.

The journal is the outbox and `delivered/<queue>.json` a cursor over it for each endpoint. The
cursor moves only after an endpoint took an event, so an agent that was killed in between sends it
again, with the same id. One thread for each endpoint: one that is down holds up no other. Whoever
uses this holds the queue's lock; it is not taken here.

A URL is as secret as its secret: neither gets into the cursor, a log, an error or a repr.

Not covered: a name server that hangs, and an answer that drips in byte by byte. Both hold up their
own endpoint only.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, delivered, journal
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.journal_chain import Event
from onbox.machine.credentials import Webhook
from onbox.webhooks.journal_tail import JournalTail, count_lines
from onbox.webhooks.post import Step, after, first_patience, is_public, next_patience, post

JOURNAL_AGAIN_S = 30.0

# Waits for a signal, at most so many seconds; tests replace it to see how long it would take.
Wait = Callable[[threading.Event, float], bool]


class Deliverer:
    """The webhooks of one queue, as threads of the agent. Without webhooks it does nothing."""

    def __init__(
        self,
        journal: Path,
        cursor: Path,
        webhooks: Sequence[Webhook],
        *,
        wait: Wait = threading.Event.wait,
    ) -> None:
        self._journal = journal
        self._cursors = _Cursors(cursor)
        self._endpoints = [_Endpoint(one, journal, self._cursors, wait) for one in webhooks]

    def start(self) -> None:
        """Under the queue's lock. Raises DamagedError where the cursor cannot be read, OSError."""
        if self._endpoints and self._journal.exists():
            # A killed agent may have left what only memory held; a sent event has to outlast it.
            atomic.sync_file(self._journal)
        self._cursors.load(count_lines(self._journal))
        self.wake()
        for endpoint in self._endpoints:
            endpoint.thread.start()

    def wake(self) -> None:
        """The journal is durable up to here. For its writer, before it appends anything more."""
        if self._endpoints:
            end = self._journal.stat().st_size if self._journal.exists() else 0
            for endpoint in self._endpoints:
                endpoint.wake(end)

    def close(self, flush_s: float) -> None:
        """Give what is pending up to `flush_s` seconds, then stop; the rest stays in the journal.

        An endpoint that is backing off gets one more try at once. Nothing writes the cursor after
        this has returned.
        """
        deadline = time.monotonic() + flush_s
        for endpoint in self._endpoints:
            endpoint.close(deadline)
        for endpoint in self._endpoints:
            if endpoint.thread.is_alive():
                endpoint.thread.join(max(0.0, deadline - time.monotonic()))
        self._cursors.close()
        for endpoint in self._endpoints:
            endpoint.stop()

    def pending(self) -> int:
        """Events still to be taken, over all endpoints. Reads the whole journal."""
        events = journal.read(self._journal).events
        public = [event.seq for event in events if is_public(event)]
        cursors = [self._cursors.of(endpoint.key) for endpoint in self._endpoints]
        return sum(seq > one.seq for one in cursors if not one.disabled for seq in public)

    def status(self) -> dict[str, dict[str, Any]]:
        """Each endpoint by a short digest of its URL: how far it is, and what its last try met."""
        return {
            digest.short(endpoint.key): {
                "seq": self._cursors.of(endpoint.key).seq,
                "disabled": self._cursors.of(endpoint.key).disabled,
                "problem": endpoint.problem,
            }
            for endpoint in self._endpoints
        }


def flush(journal: Path, cursor: Path, webhooks: Sequence[Webhook], flush_s: float) -> int:
    """Deliver what an agent left, for at most `flush_s` seconds; how many events are still left.

    Under the queue's lock, which the caller holds. Raises DamagedError.
    """
    deliverer = Deliverer(journal, cursor, webhooks)
    deliverer.start()
    deliverer.close(flush_s)
    return deliverer.pending()


class _Cursors:
    """`delivered/<queue>.json`, which the endpoints' threads share."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._delivered = Delivered({})
        self._lock = threading.Lock()
        self._is_closed = False

    def load(self, events: int) -> None:
        """A cursor beyond the journal's `events` is set back: the journal was cut, and goes on."""
        found = delivered.read(self._path)
        within = {
            key: replace(cursor, seq=min(cursor.seq, events))
            for key, cursor in found.endpoints.items()
        }
        self._delivered = replace(found, endpoints=within)

    def of(self, key: str) -> Cursor:
        return self._delivered.endpoints.get(key, Cursor())

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


class _Endpoint:
    """Sends to one endpoint until it is told to stop, or the endpoint is gone (410)."""

    def __init__(self, webhook: Webhook, path: Path, cursors: _Cursors, wait: Wait) -> None:
        self.key = digest.of_bytes(webhook.url.encode())
        self.problem: str | None = None
        self.thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._webhook = webhook
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

    def _follow(self) -> None:
        cursor = self._cursors.of(self.key)
        if cursor.disabled:
            return
        tail = JournalTail(self._path, cursor.seq)
        while (event := self._next(tail)) and self._deliver(event):
            pass

    def _next(self, tail: JournalTail) -> Event | None:
        """Wait for the next public event; None when it is time to end."""
        while not self._stopped.is_set():
            # Cleared before the look, so that an event that comes in between is not slept over.
            self._woken.clear()
            event = tail.next(self._end)
            if event is not None and is_public(event):
                return event
            if event is None and self._closing.is_set():
                return None
            if event is None:
                self._woken.wait()
        return None

    def _deliver(self, event: Event) -> bool:
        """Try until the endpoint takes it; False where it gets no more."""
        patience = first_patience()
        while not self._stopped.is_set():
            answer = post(self._webhook, event)
            self.problem = answer.problem
            step = after(answer)
            if step is Step.DELIVERED:
                self._put(seq=event.seq)
                return True
            if step is Step.DISABLE:
                self._put(disabled=f"{answer.problem} at {timestamp.utc_now()}")
                return False
            patience, wait_s = next_patience(patience, answer.retry_after)
            if not self._back_off(wait_s):
                return False
        return False

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
