"""Tells when there is something to look at, so that who waits need not look again and again.

A question is held for some seconds at most: a laptop that slept, or whose line is cut, leaves no
process here.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable

from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import report

MOST_S = 60.0
_EVERY_S = 0.5
# Of the time, on a box where somebody trains; a look may be slow on a network disk.
_MOST_SHARE = 0.02
_STDERR = 2


def answer(question: run_asks.Wait, run: RunOnBox) -> run_asks.Waited:
    def is_other() -> bool:
        return report.mark(run, question.queues) != question.mark

    return run_asks.Waited(hold_until(is_other, question.most_s))


def hold_until(has_news: Callable[[], bool], most_s: float) -> bool:
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
