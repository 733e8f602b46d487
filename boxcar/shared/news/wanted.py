"""Which events a chat gets as a message of their own; all others are counted in the next one."""

from __future__ import annotations

from boxcar.shared.files.journal import PUBLIC_TYPES
from boxcar.shared.files.journal_chain import Event

# What an event asks of a person: the command to type.
NEEDS = "needs"
_TOLD = frozenset({"cell.failed", "queue.done", "queue.stopped", "box.warning"})
# ServerChan's free plan has five messages a day.
_TOLD_RARELY = frozenset({"cell.failed", "queue.done", "queue.stopped"})
_RARE = ("serverchan",)
# How often a service may refuse one event by its own words before it is set aside.
REFUSALS = 20


def is_told(channel: str | None, event: Event) -> bool:
    """Whether this endpoint gets the event by itself. A webhook (None) gets all public ones."""
    if channel is None:
        return event.type in PUBLIC_TYPES
    if channel in _RARE:
        return event.type in _TOLD_RARELY
    return event.type in _TOLD or bool(event.data.get(NEEDS))
