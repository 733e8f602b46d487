"""Ways to do one thing, in turns, so that a busy machine is as slow for each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def seconds(
    ways: Mapping[str, Callable[[], object]],
    rounds: int,
    before: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """What each took in each round; who follows whom changes. `before` is not timed."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(rounds):
        at = turn % len(names)
        for name in (*names[at:], *names[:at]):
            before()
            began = time.monotonic()
            ways[name]()
            took[name].append(time.monotonic() - began)
    return took
