"""A question that is held until it has an answer worth sending, for some seconds at most.

A laptop that slept, or whose line is cut, leaves no process here.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable

MOST_S = 60.0
_EVERY_S = 0.5
# Of the time, on a box where somebody trains; a look may be slow on a network disk.
_MOST_SHARE = 0.02
_STDERR = 2


def until(has_news: Callable[[], bool], most_s: float) -> bool:
    """False where there was no news in that time, or nobody listens any more."""
    ends_at = time.monotonic() + min(most_s, MOST_S)
    while True:
        began = time.monotonic()
        if has_news():
            return True
        now = time.monotonic()
        if now >= ends_at:
            return False
        pause_s = max(_EVERY_S, (now - began) / _MOST_SHARE)
        if _has_hung_up(min(pause_s, ends_at - now)):
            return False


def _has_hung_up(within_s: float) -> bool:
    """Whether whoever asked is gone by then: the other end of our output is closed."""
    ends = select.poll()
    ends.register(_STDERR, 0)
    return bool(ends.poll(1000 * within_s))
