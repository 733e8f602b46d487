"""How tests wait: for the event itself, with one limit for all of them.

LIMIT_S is no measure of anything. It is there so that a hang ends with a sentence, and so long that
no machine is too busy for it; what goes well never comes near it. A test has no other clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

LIMIT_S = 1200.0
LOOK_EVERY_S = 0.02


def until(condition: Callable[[], T], what: object = "") -> T:
    """Ask again and again until it is so; what it said then.

    `what` is named when it is never so; a function is asked only then.
    """
    for _ in looks(what):
        if answer := condition():
            return answer
    raise AssertionError("the looks ended without a word")


def looks(what: object = "") -> Iterator[None]:
    """A look every few milliseconds, for loops that do something between two of them."""
    ends_at = time.monotonic() + LIMIT_S
    while time.monotonic() < ends_at:
        yield
        time.sleep(LOOK_EVERY_S)
    raise AssertionError(f"not within {LIMIT_S:.0f} s: {what() if callable(what) else what}")
