"""News to one chat or webhook: a thread, a cursor, and patience. In order, at the service's rate.

A chat gets all that waits as one message, and what is no news of its own is counted in it; a
webhook gets each public event as it is, with its id on every try. The cursor moves only after the
service itself said that it has the message. A webhook that answers 410 wants no more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.channels import answer, known
from boxcar.shared.channels.answer import WEBHOOK, Later, Refused, Taken, key_of
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, words_of
from boxcar.shared.files import codec, delivered
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.news import text
from boxcar.shared.news.text import Tally
from boxcar.shared.news.wanted import REFUSALS, after, batch, is_told
from onbox.webhooks import post
from onbox.webhooks.journal_tail import JournalTail

JOURNAL_AGAIN_S = 30.0
_DAY_S = 86_400.0

# Waits for a signal, at most so many seconds; tests replace it to see how long it would take.
Wait = Callable[[threading.Event, float], bool]


class Cursors:
    """How far each endpoint is, on the disk: `delivered/<queue>.json`, which the threads share."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._delivered = Delivered({})
        self._lock = threading.Lock()
        self._is_closed = False
        self.events = 0  # of the journal, when this began

    def load(self, events: int) -> None:
        """A cursor beyond the journal's `events` is set back: the journal was cut, and goes on."""
        self.events = events
        found = delivered.read_delivered(self._path)
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


class EndpointThread:
    """One thread that sends to one endpoint until it is told to stop."""

    def __init__(
        self,
        to: answer.Endpoint,
        path: Path,
        cursors: Cursors,
        wait: Wait,
        *,
        language: str = "en",
        sharing: int = 1,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.key = key_of(to)
        self.channel = None if to.channel == WEBHOOK else to.channel  # the chat service
        self.problem: str | None = None
        self.refusal: str | None = None  # what a person should know of it, once
        self.thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._to, self._path, self._cursors = to, path, cursors
        self._wait, self._clock, self._language = wait, clock, language
        self._rate: known.Rate = ()
        if self.channel is not None:
            self._rate = answer.share_of_rate(known.CHANNELS[self.channel].rate, sharing)
        self._tries_s: list[float] = []
        self._waiting: list[Event] = []
        self._tally = Tally()
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
                self.problem = words_of(error)
                is_on = False

    def _follow(self) -> None:
        """Send what comes until the end. Raises OSError, DamagedError."""
        if self.channel is not None and not self._cursors.is_known(self.key):
            # A chat that is new begins with what comes now, and that is written down at once.
            self._put(Cursor(seq=self._cursors.events, channel=self.channel))
        cursor = self._cursors.of(self.key)
        self._tries_s = [timestamp.parse_utc(at).timestamp() for at in cursor.sent]
        self._waiting, self._tally = [], Tally()
        seen = self._tally.take if self.channel is not None else None
        tail = JournalTail(self._path, cursor.seq, seen)
        while not self._cursors.of(self.key).disabled and self._fill(tail) and self._send(tail):
            pass

    def _fill(self, tail: JournalTail) -> bool:
        """Wait until there is something to tell; False when it is time to end."""
        while not self._stopped.is_set():
            # Cleared before the look, so that an event that comes in between is not slept over.
            self._woken.clear()
            self._take(tail)
            if any(is_told(self.channel, event) for event in self._waiting):
                return True
            if self._closing.is_set():
                return False
            self._woken.wait()
        return False

    def _take(self, tail: JournalTail) -> None:
        """What came since; of a webhook no more than the one event that is sent next."""
        if self.channel is None:
            while not self._waiting and (event := tail.next(self._end)) is not None:
                self._waiting += [event] if is_told(None, event) else []
            return
        while (event := tail.next(self._end)) is not None:
            self._tally.take(event)
            if kept := text.brief(self.channel, event):
                self._waiting.append(kept)

    def _send(self, tail: JournalTail) -> bool:
        """Try until the service has the message; False where the end comes before."""
        patience = post.first_patience()
        while not self._stopped.is_set() and self._keep_rate():
            self._take(tail)
            was_refused = bool(self._cursors.of(self.key).refusals)
            events = batch(self.channel, self._waiting, was_refused=was_refused)
            if self._rate:
                self._tries_s = [
                    *answer.tries_that_count(self._rate, self._tries_s),
                    self._clock(),
                ]
            posted = post.post_once(self._to, self._news(events), self._clock)
            if self._is_through(posted, events):
                return True
            found = posted.answer
            asked_s = found.retry_after_s if isinstance(found, Later) else 0.0
            patience, wait_s = post.next_patience(patience, asked_s)
            if not self._back_off(wait_s):
                return False
        return False

    def _news(self, events: Sequence[Event]) -> str | Event:
        if self.channel is None:
            return events[-1]
        return text.of_events(self.channel, events, self._tally.standing(), self._language)

    def _keep_rate(self) -> bool:
        """Wait as the service's rate asks for; False where the end comes before."""
        while (wait_s := answer.wait_for_rate_s(self._rate, self._tries_s, self._clock())) > 0:
            if self._stopped.is_set() or not self._back_off(wait_s):
                return False
        return True

    def _is_through(self, posted: post.Posted, events: Sequence[Event]) -> bool:
        """Note what came of a try; whether these events need no other one."""
        found, before = posted.answer, self._cursors.of(self.key)
        self.problem = None if isinstance(found, Taken) else found.why
        if isinstance(found, Later) or (isinstance(found, Refused) and self.channel is None):
            if is_over := posted.status == 410 and self.channel is None:
                self._put(replace(before, disabled=f"{self.problem} at {timestamp.utc_now()}"))
            return is_over
        if isinstance(found, Refused):
            self.refusal = self.refusal or f"{self.channel} refused a message: {found.why}"
        # On the disk, for whoever looks: the agent may have had its last word already.
        now = after(before, events, found)
        self._put(replace(now, sent=self._sent_today()) if isinstance(found, Taken) else now)
        if now.seq == before.seq:
            return False
        self._waiting = self._waiting[len(events) :]
        if not isinstance(found, Taken):
            self.problem = f"set aside after {REFUSALS} refusals: {self.problem}"
        return True

    def _sent_today(self) -> tuple[str, ...]:
        """Only where a day has few: an agent that is started anew has to know of them."""
        if all(window_s < _DAY_S for _, window_s in self._rate):
            return ()
        times = answer.tries_that_count(self._rate, self._tries_s)
        return tuple(timestamp.utc(datetime.fromtimestamp(one, timezone.utc)) for one in times)

    def _back_off(self, wait_s: float) -> bool:
        """Wait before the next try; False where the end comes before it."""
        if not self._closing.is_set():
            self._wait(self._closing, wait_s)
            return True
        has_time = time.monotonic() + wait_s < self._deadline
        return has_time and not self._wait(self._stopped, wait_s)

    def _put(self, cursor: Cursor) -> None:
        try:
            self._cursors.put(self.key, cursor)
        except OSError as error:
            # After a restart the event is sent again, with its id: at least once still holds.
            self.problem = f"the cursor was not written: {error}"
