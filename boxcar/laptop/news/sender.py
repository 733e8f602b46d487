"""What of a queue's news one endpoint lacks, sent from this machine: one message for all of it.

A cursor moves only over what was taken; one that fails is tried again at a later look.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from boxcar.laptop.common.language import language_of
from boxcar.laptop.news import posting
from boxcar.laptop.project.notify.targets import Target
from boxcar.laptop.project.project import Project
from boxcar.shared import timestamp
from boxcar.shared.channels import known, rate
from boxcar.shared.channels.answer import WEBHOOK, Endpoint
from boxcar.shared.files.delivered import Cursor
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.news import text
from boxcar.shared.news.standing import standing
from boxcar.shared.news.wanted import REFUSALS, is_told
from boxcar.shared.record import dataclass
from boxcar.shared.wire import news_asks

# Of what has no rate of its own.
_RATE = ((1, 10.0),)


@dataclass(frozen=True)
class Sender:
    """Sends with what is set in `environ`."""

    project: Project
    environ: Mapping[str, str]

    def send(self, target: Target, events: Sequence[Event], cursor: Cursor) -> Cursor:
        """The cursor afterwards. Raises TemporaryError, DamagedError."""
        endpoint = target.endpoint
        waiting = [event for event in events if event.seq > cursor.seq]
        if endpoint is None or not any(is_told(_channel(target), event) for event in waiting):
            return cursor
        if target.channel == WEBHOOK:
            return self._each(endpoint, waiting, cursor)
        return self._all(endpoint, waiting, events, cursor)

    def _all(
        self, endpoint: Endpoint, waiting: Sequence[Event], events: Sequence[Event], cursor: Cursor
    ) -> Cursor:
        language = self.project.job.language or language_of("", self.environ)
        batch = _batch(endpoint.channel, waiting, cursor)
        said = text.of_events(endpoint.channel, batch, standing(events), language)
        [posted] = posting.post(self.project, [endpoint], said, self.environ)
        sent = tuple((*cursor.sent, _now())[-max(most for most, _ in rate_of(endpoint.channel)) :])
        return after(endpoint.channel, replace(cursor, sent=sent), batch, posted)

    def _each(self, endpoint: Endpoint, waiting: Sequence[Event], cursor: Cursor) -> Cursor:
        """Events as they are, each with its id, until one is not taken."""
        for event in waiting:
            if is_told(None, event):
                [posted] = posting.post(self.project, [endpoint], "", self.environ, event)
                if posted.verdict != news_asks.TAKEN:
                    return cursor
            cursor = replace(cursor, seq=event.seq)
        return cursor


def after(channel: str, cursor: Cursor, batch: Sequence[Event], posted: news_asks.Posted) -> Cursor:
    """What a try of these events leaves. One that is refused for ever is set aside and counted, so
    that it does not hold up those after it.
    """
    if posted.verdict in posting.THROUGH:
        return replace(cursor, seq=batch[-1].seq, refused=None, refusals=None, away=None)
    if posted.verdict != news_asks.REFUSED:
        return replace(cursor, away=posted.said)
    refused = replace(cursor, refused=posted.said, away=None)
    refusals = (cursor.refusals or 0) + 1
    if refusals < REFUSALS:
        return replace(refused, refusals=refusals)
    count = (cursor.set_aside or 0) + sum(is_told(channel, event) for event in batch)
    aside = replace(refused, set_aside=count, set_aside_why=posted.said, refusals=None)
    return replace(aside, seq=batch[-1].seq)


def _batch(channel: str, waiting: Sequence[Event], cursor: Cursor) -> Sequence[Event]:
    """All that waits; after a refusal only up to the first that is told by itself."""
    if not cursor.refusals:
        return waiting
    first = next(n for n, event in enumerate(waiting) if is_told(channel, event))
    return waiting[: first + 1]


def is_within_rate(channel: str, cursor: Cursor) -> bool:
    """Whether its service may be sent a message now; tries count as well."""
    tries_s = [timestamp.parse_utc(at).timestamp() for at in cursor.sent]
    return rate.wait_s(rate_of(channel), tries_s, time.time()) <= 0


def rate_of(channel: str) -> tuple[tuple[int, float], ...]:
    return known.channel(channel).RATE if channel in known.NAMES else _RATE


def _channel(target: Target) -> str | None:
    return None if target.channel == WEBHOOK else target.channel


def _now() -> str:
    return timestamp.utc(datetime.now(timezone.utc))
