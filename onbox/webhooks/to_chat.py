"""News to one chat: in order, at the service's rate, several in one message where several wait.

A cursor moves only after the service itself said that it has the message. What is no news of its
own is counted in the next message. A service that refuses is tried again with one event at a time;
one event that it refuses REFUSALS times is set aside, so that a bad one does not hold up the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.channels import answer, known, rate
from boxcar.shared.channels.answer import Later, Refused, Taken, key_of
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.news import text
from boxcar.shared.news.standing import Tally
from boxcar.shared.news.wanted import REFUSALS, is_told
from onbox.webhooks import chat_post
from onbox.webhooks.endpoint import Cursors, Endpoint, Wait
from onbox.webhooks.journal_tail import JournalTail
from onbox.webhooks.post import first_patience, next_patience

_DAY_S = 86_400.0


class ToChat(Endpoint):
    def __init__(
        self,
        chat: answer.Endpoint,
        path: Path,
        cursors: Cursors,
        wait: Wait,
        *,
        language: str,
        sharing: int = 1,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(key_of(chat), path, cursors, wait)
        self._chat = chat
        self._language = language
        self._clock = clock
        self._rate = rate.share(known.channel(chat.channel).RATE, sharing)
        self._tries_s: list[float] = []
        self._waiting: list[Event] = []
        self._tally = Tally()
        self._refused = 0  # how often the first of them was
        self._refusal: str | None = None

    @property
    def channel(self) -> str:
        return self._chat.channel

    @property
    def refusal(self) -> str | None:
        return self._refusal

    def _follow(self) -> None:
        self._begin()
        self._waiting = []
        self._tally = Tally()
        tail = JournalTail(self._path, self._cursors.of(self.key).seq, self._tally.take)
        while self._fill(tail) and self._send(tail):
            pass

    def _begin(self) -> None:
        """A chat that is new begins with what comes now, and that is written down at once."""
        if not self._cursors.is_known(self.key):
            self._put(seq=self._cursors.events, channel=self.channel)
        sent = self._cursors.of(self.key).sent
        self._tries_s = [timestamp.parse_utc(at).timestamp() for at in sent]

    def _fill(self, tail: JournalTail) -> bool:
        """Wait until there is something to tell; False when it is time to end."""
        while not self._stopped.is_set():
            # Cleared before the look, so that an event that comes in between is not slept over.
            self._woken.clear()
            self._take(tail)
            if any(self._is_told(event) for event in self._waiting):
                return True
            if self._closing.is_set():
                return False
            self._woken.wait()
        return False

    def _take(self, tail: JournalTail) -> None:
        while (event := tail.next(self._end)) is not None:
            self._tally.take(event)
            if kept := text.brief(self.channel, event):
                self._waiting.append(kept)

    def _send(self, tail: JournalTail) -> bool:
        """Try until the service has the message; False where the end comes before."""
        patience = first_patience()
        while not self._stopped.is_set():
            if not self._keep_rate():
                return False
            self._take(tail)
            events = self._batch()
            self._tries_s = [*rate.kept(self._rate, self._tries_s), self._clock()]
            found = chat_post.post(self._chat, self._message(events), self._clock)
            if self._is_through(found, events):
                return True
            asked_s = found.retry_after_s if isinstance(found, Later) else 0.0
            patience, wait_s = next_patience(patience, None)
            if not self._back_off(max(wait_s, asked_s)):
                return False
        return False

    def _keep_rate(self) -> bool:
        """Wait as the service's rate asks for; False where the end comes before."""
        while (wait_s := rate.wait_s(self._rate, self._tries_s, self._clock())) > 0:
            if self._stopped.is_set() or not self._back_off(wait_s):
                return False
        return True

    def _is_through(self, found: answer.Answer, events: list[Event]) -> bool:
        """Note what came of a try; whether these events need no other one."""
        if isinstance(found, Taken):
            self.problem = None
            self._pass(events, is_taken=True)
            return True
        self.problem = found.why
        if isinstance(found, Refused):
            self._refused += 1
            self._note_refusal(found.why)
            self._refusal = self._refusal or f"{self.channel} refused a message: {found.why}"
        if self._refused < REFUSALS:
            return False
        self.problem = f"set aside after {REFUSALS} refusals: {found.why}"
        self._pass(events, is_taken=False)
        return True

    def _note_refusal(self, why: str) -> None:
        """On the disk, for whoever looks: the agent may have had its last word already."""
        if self._cursors.of(self.key).refused != why:
            self._put(refused=why)

    def _batch(self) -> list[Event]:
        """All that waits; after a refusal only up to the first that is told by itself."""
        if not self._refused:
            return list(self._waiting)
        first = next(n for n, event in enumerate(self._waiting) if self._is_told(event))
        return self._waiting[: first + 1]

    def _pass(self, events: list[Event], *, is_taken: bool) -> None:
        self._waiting = self._waiting[len(events) :]
        self._refused = 0
        if is_taken:
            self._put(seq=events[-1].seq, sent=self._sent_today(), refused=None)
            return
        before = self._cursors.of(self.key)
        count = (before.set_aside or 0) + sum(map(self._is_told, events))
        self._put(seq=events[-1].seq, set_aside=count, set_aside_why=before.refused)

    def _sent_today(self) -> tuple[str, ...]:
        """Only where a day has few: an agent that is started anew has to know of them."""
        if all(window_s < _DAY_S for _, window_s in self._rate):
            return ()
        times = rate.kept(self._rate, self._tries_s)
        return tuple(timestamp.utc(datetime.fromtimestamp(one, timezone.utc)) for one in times)

    def _message(self, events: list[Event]) -> str:
        return text.of_events(self.channel, events, self._tally.standing(), self._language)

    def _is_told(self, event: Event) -> bool:
        return is_told(self.channel, event)
