"""The states of cells and the conditions of queues, as words for a person."""

from __future__ import annotations

import functools

from boxcar.shared.sentence import known_word, mark

_STATES = frozenset(
    (
        mark("verified"),
        mark("running"),
        mark("settling"),
        mark("retrying"),
        mark("preempted"),
        mark("failed"),
        mark("broken off"),
        mark("damaged"),
        mark("unknown"),
        mark("dropped"),
        mark("queued"),
        mark("accepted"),
        mark("claimed"),
        mark("succeeded"),
        mark("synced"),
        mark("abandoned"),
        mark("bad"),
        mark("missing"),
    )
)
_CONDITIONS = frozenset(
    (
        mark("not started"),
        mark("running"),
        mark("idle"),
        mark("pending"),
        mark("held"),
        mark("done"),
        mark("incomplete"),
        mark("drained"),
        mark("stopped"),
        mark("unreachable"),
        mark("unknown"),
        mark("damaged"),
        mark("agent dead"),
        mark("trainer dead"),
        mark("no room"),
        mark("stalled agent"),
        mark("step frozen"),
    )
)


@functools.cache  # there are as many as states, and a table has a hundred thousand
def state_sentence(state: str) -> str:
    """The state of a cell; a word of a newer version stays as it is."""
    return known_word(state, _STATES)


def condition_sentence(condition: str) -> str:
    """What is the matter with a queue, in the same way."""
    return known_word(condition, _CONDITIONS)
