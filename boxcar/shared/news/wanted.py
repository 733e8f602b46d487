"""Which events a chat gets as a message of their own, which need a person, and how far an endpoint
is after a try. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from boxcar.shared.channels.answer import Answer, Refused, Taken
from boxcar.shared.files.delivered import Cursor
from boxcar.shared.files.journal import PUBLIC_TYPES
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.process import end_reason
from boxcar.shared.triage.evidence import Course, course_of

# When a GPU counts as idle while a cell runs; the busiest card of the box counts.
IDLE_PERCENT = 5.0
IDLE_FOR_S = 20 * 60.0
# Of a warning, its `what`: a cell stands still; one of its numbers is none. `ends` says that the
# agent ends the attempt for it.
STALLED, NAN = "cell_stalled", "metric_nan"
# A box that is through with its cells stops itself soon; or it cannot, and bills on.
BOX_ENDS, BOX_STAYS = "box_ends", "box_stays"
# A box that `up` rented stops itself soon, by its deadline.
DEADLINE = "deadline"
# What an event asks of a person: the command to type.
NEEDS = "needs"
# Of a warning: no chat is told of it, because one was told that it may come.
QUIET = "is_quiet"
_TOLD = frozenset({"cell.failed", "queue.done", "queue.stopped", "box.warning"})
# ServerChan's free plan has five messages a day.
_TOLD_RARELY = frozenset({"cell.failed", "queue.done", "queue.stopped"})
_RARE = ("serverchan",)
# How often a service may refuse one event by its own words before it is set aside.
REFUSALS = 20
# Of a warning, by its `what`.
_OF_WARNING = {
    "accepted_damaged": "repair",
    BOX_STAYS: "down",
    DEADLINE: "status",
    "disk_full": "status",
    "news_refused": "notify --test",
    "queue_line": "plan",
    "release_not_taken": "status",
    "waits_for_release": "push",
    "webhooks_off": "repair --put-back",
}


def is_told(channel: str | None, event: Event) -> bool:
    """Whether this endpoint gets the event by itself. A webhook (None) gets all public ones."""
    if channel is None:
        return event.type in PUBLIC_TYPES
    if event.data.get(QUIET):
        return False
    if channel in _RARE:
        return event.type in _TOLD_RARELY
    return event.type in _TOLD or bool(event.data.get(NEEDS))


def needed_command(type: str, data: Mapping[str, Any]) -> str | None:
    """What a person types about an event, after `boxcar`; None for one that needs nobody, because
    the run gets on there by itself. What they have to do comes first in the event's own text.
    """
    if type == "box.warning":
        if data.get("what") == STALLED and not (data.get("ends") or data.get("is_over")):
            return f"explain --cell {data['cell']}"
        if data.get("what") == BOX_ENDS and not data.get("is_over"):
            return f"stop --box {data['ends_box']}"
        return _OF_WARNING.get(data.get("what", ""))
    if type == "queue.stopped":
        return "status" if data.get("by") in (end_reason.TROUBLE, end_reason.BUDGET) else None
    is_asked = type == "cell.failed" and course_of(data.get("class")) is Course.ASK
    return f"explain --cell {data['cell']}" if is_asked or type == "box.idle" else None


def batch(channel: str | None, waiting: Sequence[Event], *, was_refused: bool) -> Sequence[Event]:
    """What the next try sends: all that waits, and after a refusal, or to a webhook, no more than
    the first that is told by itself.
    """
    if channel is not None and not was_refused:
        return waiting
    first = next(n for n, event in enumerate(waiting) if is_told(channel, event))
    return waiting[: first + 1]


def after(cursor: Cursor, events: Sequence[Event], answer: Answer) -> Cursor:
    """Where an endpoint is after a try of these events: it moves only over what the service itself
    says that it has. A chat's event that is refused for ever is set aside and counted, so that it
    does not hold up those after it.
    """
    if isinstance(answer, Taken):
        return replace(cursor, seq=events[-1].seq, refused=None, refusals=None, away=None)
    if not isinstance(answer, Refused):
        return replace(cursor, away=answer.why)
    refusals = (cursor.refusals or 0) + 1
    refused = replace(cursor, refused=answer.why, refusals=refusals, away=None)
    if refusals < REFUSALS:
        return refused
    count = (cursor.set_aside or 0) + sum(is_told(cursor.channel, event) for event in events)
    aside = replace(refused, set_aside=count, set_aside_why=answer.why, refusals=None)
    return replace(aside, seq=events[-1].seq)
