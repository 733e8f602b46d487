"""What is left to do behind a save, in one thread, in the order of the saves."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Behind:
    """Not a daemon: a script that ends waits until it is through."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    def do(self, work: Callable[[], T]) -> Future[T]:
        """Done now where no thread can be started, as at the interpreter's end (atexit)."""
        try:
            return self._thread.submit(work)
        except RuntimeError:
            done: Future[T] = Future()
            done.set_result(work())
            return done
