"""As many points of a series as a person can look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

MOST_POINTS = 2000

P = TypeVar("P")


def thin(points: Sequence[P], most: int = MOST_POINTS) -> list[P]:
    """At most so many, as far from each other as before, with the first and the last."""
    last = len(points) - 1
    if last < most:
        return list(points)
    return [points[number * last // (most - 1)] for number in range(most)]
