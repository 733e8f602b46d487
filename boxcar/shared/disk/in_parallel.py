"""The same for many files, a few at once: what waits for a disk waits together.

What is done in no time is done one after another: threads that only walk through Python stand in
each other's way, and take twice as long. Whoever reads from a disk or hashes a MB lets others on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

One = TypeVar("One")
Found = TypeVar("Found")
_MOST_AT_ONCE = 8
# Of fewer nobody has to know how long they take.
_MANY_THINGS = 64
# After one that was not quick so many are done at once, until one is tried alone again.
_BLOCK = 256
_QUICK_S = 0.001


def run_in_parallel(act: Callable[[One], Found], these: Collection[One]) -> list[Found]:
    """What `act` says of each, in their order. Raises what the first of them raises."""
    if len(these) < 2:
        return [act(one) for one in these]
    with ThreadPoolExecutor(min(_MOST_AT_ONCE, len(these), 2 * (os.cpu_count() or 1))) as pool:
        if len(these) < _MANY_THINGS:
            return list(pool.map(act, these))
        return list(_as_they_take(act, [*these], pool))


def _as_they_take(
    act: Callable[[One], Found], these: Sequence[One], pool: ThreadPoolExecutor
) -> Iterator[Found]:
    at = 0
    while at < len(these):
        began_s, cpu_s = time.perf_counter(), time.thread_time()
        yield act(these[at])
        at += 1
        if not is_quick(time.perf_counter() - began_s, time.thread_time() - cpu_s):
            yield from pool.map(act, these[at : at + _BLOCK])
            at += _BLOCK


def is_quick(took_s: float, cpu_s: float) -> bool:
    """Whether it took next to nothing, and has waited for nobody. Pure."""
    return took_s < _QUICK_S and took_s < 2 * cpu_s
