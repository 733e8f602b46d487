"""The same for many files, a few at once: what waits for a disk waits together."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

One = TypeVar("One")
Found = TypeVar("Found")
_MOST_AT_ONCE = 8


def run(act: Callable[[One], Found], these: Collection[One]) -> list[Found]:
    """What `act` says of each, in their order. Raises what the first of them raises."""
    if len(these) < 2:
        return [act(one) for one in these]
    with ThreadPoolExecutor(min(_MOST_AT_ONCE, len(these), 2 * (os.cpu_count() or 1))) as pool:
        return list(pool.map(act, these))
