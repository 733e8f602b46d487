"""How long to wait before the next message, so that a service's rate is kept. Pure."""

from __future__ import annotations

from collections.abc import Sequence


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
