"""What is left to do behind a save, in one thread, in the order of the saves."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from boxcar.training.ranks import side_group
from boxcar.training.reporting.say import say

T = TypeVar("T")

_under_way: weakref.WeakSet[Future[Any]] = weakref.WeakSet()


def through() -> None:
    """Until all is done that is behind any save of this process.

    A Checkpointer may begin in the folder in which one before it still deletes.
    """
    futures.wait(list(_under_way))


class Behind:
    """Not a daemon: a script that ends waits until it is through."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._last: Future[float] | None = None

    def begin(self, checkpoint: str, work: Callable[[], object]) -> None:
        """What is left to do for a checkpoint; `joined` comes before the next one."""
        self._last = self.do(lambda: _timed(checkpoint, work))

    def joined(self) -> float:
        """Until that is done: the seconds that it took; raises what went wrong with it."""
        last, self._last = self._last, None
        with side_group.patient():
            return last.result() if last is not None else 0.0

    def do(self, work: Callable[[], T]) -> Future[T]:
        """Done now where no thread can be started, as at the interpreter's end (atexit)."""
        try:
            under_way = self._thread.submit(work)
        except RuntimeError:
            done: Future[T] = Future()
            done.set_result(work())
            return done
        _under_way.add(under_way)
        return under_way


def _timed(checkpoint: str, work: Callable[[], object]) -> float:
    started_s = time.monotonic()
    try:
        work()
    except BaseException as error:
        # Said at once, because a script that ends now never asks.
        say(f"the checkpoint {checkpoint} was not saved: {error}")
        raise
    return time.monotonic() - started_s
