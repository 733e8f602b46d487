"""What a queue's news came to that its endpoints have not taken. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxcar.shared.errors import Command
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.journal import PUBLIC_TYPES
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.news.wanted import REFUSALS, is_told
from boxcar.shared.sentence import Sentence, _


def count_unsent(events: Sequence[Event], sent: Delivered) -> int:
    """How many events some endpoint has not taken. Where no endpoint is known: all public ones."""
    if not sent.endpoints:
        return sum(event.type in PUBLIC_TYPES for event in events)
    reached = [cursor for cursor in sent.endpoints.values() if not cursor.disabled]
    return sum(
        any(event.seq > cursor.seq and is_told(cursor.channel, event) for cursor in reached)
        for event in events
    )


def delivery_problems(
    queue: str, events: Sequence[Event], sent: Delivered, *, is_over: bool
) -> tuple[str, ...]:
    """What a person should know of it. `is_over`: the queue's agent has ended, so nothing on its
    box delivers any more.
    """
    is_refused = any(cursor.refused for cursor in sent.endpoints.values())
    told = events if is_refused else ()
    warned = [str(event.data.get("text")) for event in told if event.type == "box.warning"]
    found = [s for cursor in sent.endpoints.values() for s in _of_cursor(queue, cursor, warned)]
    found += [s for cursor in sent.endpoints.values() for s in _away(queue, cursor, events)]
    if is_over and sent.endpoints and (left := count_unsent(events, sent)):
        found.append(
            _(
                "{queue}: {n} {n:notification was|notifications were} not delivered yet; "
                "{command} makes its box send {n:it|them}",
                queue=queue,
                n=left,
                command=Command("watch"),
            )
        )
    return tuple(found)


def _of_cursor(queue: str, cursor: Cursor, warned: Sequence[str]) -> Iterator[Sentence]:
    about = {"queue": queue, "channel": cursor.channel}
    if cursor.set_aside:
        fields = about | {"n": cursor.set_aside, "times": REFUSALS, "why": cursor.set_aside_why}
        yield _(
            "{queue}: {n} {n:notification was|notifications were} not delivered and will not be "
            "retried: {channel} rejected each of them {times} times: {why}",
            **fields,
        )
    if cursor.refused and not any(cursor.refused in text for text in warned):
        yield _("{queue}: {channel} rejects its notifications: {why}", **about, why=cursor.refused)


def _away(queue: str, cursor: Cursor, events: Sequence[Event]) -> Iterator[Sentence]:
    """What this machine could not send: nobody else says it."""
    if cursor.away and (left := count_unsent(events, Delivered({"": cursor}))):
        fields = {"channel": cursor.channel, "n": left, "why": cursor.away}
        yield _(
            "{queue}: {n} {n:notification was|notifications were} not delivered to {channel} from "
            "here ({why}); the next update retries",
            queue=queue,
            **fields,
        )
