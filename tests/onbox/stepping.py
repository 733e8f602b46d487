"""What the agent's loop does with steps: it goes on with them until they are through."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")
SOON_S = 0.01


def see_through(steps: Generator[object, None, T], tick: Callable[[], object] = lambda: None) -> T:
    """What they come to; `tick` is called at each of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found
        tick()
        time.sleep(SOON_S)


def comes_to(value: T) -> Generator[None, None, T]:
    """Steps that are through after one."""
    yield
    return value
