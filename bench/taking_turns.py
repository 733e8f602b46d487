"""Ways to do one thing, in turns, so that a busy machine is as slow for each of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping


def seconds(
    ways: Mapping[str, Callable[[], object]],
    rounds: int,
    before: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """What each took in each round; who follows whom changes, as the disk may not be through with
    the one before. `before` is not timed.
    """
    took: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds):
        for name in random.Random(turn).sample(list(ways), len(ways)):
            before()
            began = time.monotonic()
            ways[name]()
            took[name].append(time.monotonic() - began)
    return took
