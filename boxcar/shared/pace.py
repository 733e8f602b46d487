"""How fast something goes lately."""

from __future__ import annotations

from collections import deque

WINDOW_S = 15.0


class Pace:
    """Look now and then: the rate is that of the last seconds, or that since the look before."""

    def __init__(self, begun_s: float) -> None:
        """`begun_s` is of the clock that every look is told by, such as time.monotonic."""
        self._seen = deque([(begun_s, 0.0)])

    def rate(self, done: float, now_s: float) -> float:
        """How much came in a second; 0 where nothing did."""
        self._seen.append((now_s, done))
        # The last look before the window stays: there is one only now and then.
        while now_s - self._seen[1][0] > WINDOW_S:
            self._seen.popleft()
        first_s, first = self._seen[0]
        return (done - first) / (now_s - first_s) if now_s > first_s else 0.0
