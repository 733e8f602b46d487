"""What this machine sends of a run's news: at each look what the job says is sent from here, and
before a teardown what a box could not send any more. One message for all that waits.

A cursor moves only over what was taken; one that fails is tried again at a later look. How far each
endpoint of this machine is lies in `.boxcar/told/`, as the boxes have it of theirs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from boxcar.laptop.common import side_by_side
from boxcar.laptop.common.home import Home
from boxcar.laptop.common.language import language_of
from boxcar.laptop.project.from_environment import Target, targets
from boxcar.laptop.project.notify.endpoints import BOX, LAPTOP
from boxcar.laptop.project.project import Project
from boxcar.laptop.run import undelivered
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.shared import timestamp
from boxcar.shared.channels import answer, known
from boxcar.shared.channels.answer import WEBHOOK, Later, Refused, Taken, key_of
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import BoxcarError, words_of
from boxcar.shared.files import codec, delivered
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.news import text
from boxcar.shared.news.wanted import after, batch, is_told
from boxcar.shared.record import dataclass
from boxcar.shared.wire import news_asks

# Of what has no rate of its own.
_RATE: known.Rate = ((1, 10.0),)
# The box itself stops trying after 60.
TIMEOUT_S = 75.0


@dataclass(frozen=True)
class Sender:
    """Sends with what is set in `environ`."""

    project: Project
    environ: Mapping[str, str]

    def send(self, target: Target, events: Sequence[Event], cursor: Cursor) -> Cursor:
        """The cursor afterwards. Raises TemporaryError, DamagedError."""
        channel = None if target.channel == WEBHOOK else target.channel
        waiting = [event for event in events if event.seq > cursor.seq]
        if target.endpoint is None or not any(is_told(channel, event) for event in waiting):
            return cursor
        if channel is None:
            return self._each(target.endpoint, waiting, cursor)
        events_now = batch(channel, waiting, was_refused=bool(cursor.refusals))
        language = self.project.job.language or language_of("", self.environ)
        said = text.of_events(channel, events_now, text.standing(events), language)
        posted = self._post(target.endpoint, said)
        times = (*cursor.sent, timestamp.utc(datetime.now(timezone.utc)))
        sent = times[-max(most for most, _ in _rate_of(channel)) :]
        return after(replace(cursor, sent=sent), events_now, posted)

    def _each(self, to: answer.Endpoint, waiting: Sequence[Event], cursor: Cursor) -> Cursor:
        """Events as they are, each with its id, until one is not taken."""
        for event in waiting:
            if is_told(None, event) and self._post(to, "", event) != Taken():
                return cursor
            cursor = replace(cursor, seq=event.seq)
        return cursor

    def _post(self, to: answer.Endpoint, said: str, event: Event | None = None) -> answer.Answer:
        # Late: few looks have anything to send, and none shall wait for smtplib, ssl and ssh.
        from boxcar.laptop.news import posting

        [posted] = posting.post(self.project, [to], said, self.environ, event)
        if posted.verdict in posting.THROUGH:
            return Taken()
        return (Refused if posted.verdict == news_asks.REFUSED else Later)(posted.said)


def _is_within_rate(channel: str, cursor: Cursor) -> bool:
    """Whether its service may be sent a message now; tries count as well."""
    tries_s = [timestamp.parse_utc(at).timestamp() for at in cursor.sent]
    return answer.wait_for_rate_s(_rate_of(channel), tries_s, time.time()) <= 0


def _rate_of(channel: str) -> known.Rate:
    return known.CHANNELS[channel].rate if channel in known.CHANNELS else _RATE


# --- at each look


def begin_news(run: OpenRun, view: RunView, environ: Mapping[str, str]) -> None:
    """From now on news counts: what comes later is sent, also where nobody looks for hours."""
    _at_each(run, view, environ, is_to_send=False)


def send_news(run: OpenRun, view: RunView, environ: Mapping[str, str]) -> list[str]:
    """Send what waits; sentences of what a service refuses. Never raises what a service does."""
    return _at_each(run, view, environ, is_to_send=True)


def _at_each(
    run: OpenRun, view: RunView, environ: Mapping[str, str], *, is_to_send: bool
) -> list[str]:
    job = run.project.job
    if not any(line.place == LAPTOP for line in job.notify):
        return []
    try:
        found = [one for one in targets(job, environ, LAPTOP) if one.endpoint]
        sender = Sender(run.project, environ) if is_to_send else None
        return [told for queue in view.queues for told in _of_queue(run, queue, found, sender)]
    except (BoxcarError, OSError) as error:
        return [words_of(error)]


def _of_queue(
    run: OpenRun, queue: QueueView, found: list[Target], sender: Sender | None
) -> list[str]:
    path = Home(run.project.root).told(run.plan.run, queue.name)
    atomic.make_folder(path.parent)
    # Another look may be at it: one is enough.
    held = lock.try_hold(path.with_suffix(".lock"))
    if held is None:
        return []
    try:
        told = delivered.read_delivered(path)
        for one in found:
            told = _moved(queue, one, told, sender)
            atomic.write_whole(path, codec.to_document(told))
        keys = [key_of(one.endpoint) for one in found if one.endpoint]
        sent = Delivered({key: told.endpoints[key] for key in keys})
        return list(undelivered.delivery_problems(queue.name, queue.events, sent, is_over=False))
    finally:
        os.close(held)


def _moved(queue: QueueView, one: Target, told: Delivered, sender: Sender | None) -> Delivered:
    assert one.endpoint
    key, events = key_of(one.endpoint), queue.events
    cursor = told.endpoints.get(key)
    if cursor is None:
        cursor = Cursor(events[-1].seq if events else 0, channel=one.channel)
    elif sender and _is_within_rate(one.channel, cursor):
        cursor = sender.send(one, events, cursor)
    return replace(told, endpoints=told.endpoints | {key: cursor})


# --- before a teardown: news never keeps a run from its end, so what goes wrong is only counted


def queues_with_news(run: OpenRun, view: RunView, ended: Collection[str]) -> list[QueueView]:
    """The queues with news that an endpoint lacks, but for those of boxes that have `ended`."""
    return [
        queue
        for queue in view.queues
        if queue.box not in ended and run.is_planned(queue.box) and _left(queue, _sent(run, queue))
    ]


def deliver_news(
    run: OpenRun, queues: Sequence[QueueView], environ: Mapping[str, str]
) -> dict[str, int]:
    """Each queue's box gets a minute, then this machine sends the rest: how many events of each
    nobody has taken in the end. Raises nothing that a box raised.
    """
    by_name = {queue.name: queue for queue in queues}
    side_by_side.each_or_why(by_name, lambda name: _by_box(run, by_name[name]))
    run.refresh()
    found = _targets(run, environ)
    sender = Sender(run.project, environ)
    told, _ = side_by_side.each_or_why(
        by_name, lambda name: _for_box(run, by_name[name], found, sender)
    )
    return {
        name: told.get(name, _left(by_name[name], _sent(run, by_name[name]))) for name in by_name
    }


def _by_box(run: OpenRun, queue: QueueView) -> None:
    if queue.session is None or run.is_out_of_reach(queue.box):
        return
    credentials = run.plan.box(queue.box).credentials
    question = news_asks.Deliver(queue.name, queue.session.release, credentials)
    run.ask(queue.box, question, timeout_s=TIMEOUT_S)


def _for_box(run: OpenRun, queue: QueueView, found: Sequence[Target], sender: Sender) -> int:
    endpoints = dict(_sent(run, queue).endpoints)
    for one in found:
        key = key_of(one.endpoint) if one.endpoint else ""
        cursor = endpoints.get(key)
        if cursor is not None and not cursor.disabled:
            endpoints[key] = sender.send(one, queue.events, cursor)
    return _left(queue, Delivered(endpoints))


def _targets(run: OpenRun, environ: Mapping[str, str]) -> list[Target]:
    """Those that boxes send to, as far as their variables are set here."""
    try:
        return targets(run.project.job, environ, BOX)
    except BoxcarError:
        return []


def _sent(run: OpenRun, queue: QueueView) -> Delivered:
    """Where it cannot be read nothing is known, and nothing is sent twice."""
    try:
        return delivered.read_delivered(run.tier.delivered(queue.name))
    except (BoxcarError, OSError):
        return Delivered({})


def _left(queue: QueueView, sent: Delivered) -> int:
    """Where no endpoint is known nobody asked for news."""
    return undelivered.count_unsent(queue.events, sent) if sent.endpoints else 0
