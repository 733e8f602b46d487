"""How long to wait before the next message, so that a service's rate is kept. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

_LONGEST_S = 3600.0


def wait_s(rate: Sequence[tuple[int, float]], tries_s: Sequence[float], now_s: float) -> float:
    """Seconds until one more try is within every limit of `rate`: so many in so many seconds.

    `tries_s` are the times of the earlier tries, in their order, on the clock of `now_s`.
    """
    waits = [0.0]
    for most, window_s in rate:
        if len(tries_s) >= most:
            # A clock that was set back makes no wait longer than the window.
            waits.append(min(window_s, tries_s[-most] + window_s - now_s))
    return max(waits)


def kept(rate: Sequence[tuple[int, float]], tries_s: Sequence[float]) -> list[float]:
    """The tries that a limit can still ask for."""
    return list(tries_s)[-max(most for most, _ in rate) :]


def share(rate: Sequence[tuple[int, float]], queues: int) -> tuple[tuple[int, float], ...]:
    """One queue's part of a rate that so many queues may use at once, without asking each other.

    A limit of a day is not parted: a queue has little to say in one, and must not wait for days.
    """
    return tuple(
        (most, window_s) if window_s > _LONGEST_S else _part(most, window_s, max(1, queues))
        for most, window_s in rate
    )


def _part(most: int, window_s: float, queues: int) -> tuple[int, float]:
    if queues <= most:
        return most // queues, window_s
    return 1, window_s * math.ceil(queues / most)
