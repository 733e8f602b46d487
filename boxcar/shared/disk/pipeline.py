"""A file read once by one thread while others take what it read: hashing waits for nobody.

The blocks are a few and used again and again, so that a file of any size takes the same memory.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence

Take = Callable[[memoryview], object]
# So many that who gets a core only now and then finds enough to do with it.
_BLOCKS = 8


def stream(
    fd: int,
    takers: Sequence[Take],
    block_bytes: int,
    on_chunk: Callable[[int], None] | None = None,
    *,
    here: Take = len,
) -> int:
    """Read `fd` to its end; each of `takers` gets every block, in order, in a thread of its own,
    and `here` in the one that reads.

    Returns the bytes read. A block is only valid during the call. What a taker raises is raised
    here, once no thread is left; what `on_chunk(size_bytes)` raises, likewise, and no taker gets
    what still waits for it then.
    """
    free = _Free(block_bytes)
    workers = [_Worker(take) for take in takers]
    size_bytes = 0
    try:
        while not any(worker.error for worker in workers):
            block = free.take()
            count = os.readv(fd, [block])
            if not count:
                break
            shared = _Shared(block, len(workers) + 1, free)
            for worker in workers:
                worker.blocks.put((shared, memoryview(block)[:count]))
            here(memoryview(block)[:count])
            shared.let_go()
            size_bytes += count
            if on_chunk:
                on_chunk(count)
    except BaseException as error:
        for worker in workers:
            worker.error = error
        raise
    finally:
        for worker in workers:
            worker.end()
    for worker in workers:
        if worker.error:
            raise worker.error
    return size_bytes


class _Free:
    """Blocks that nobody holds, made when they are needed: their pages cost more than a read."""

    def __init__(self, block_bytes: int) -> None:
        self._block_bytes, self._may_make = block_bytes, _BLOCKS
        self._blocks: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self.give = self._blocks.put

    def take(self) -> bytearray:
        if self._may_make and self._blocks.empty():
            self._may_make -= 1
            return bytearray(self._block_bytes)
        return self._blocks.get()


class _Shared:
    """A block that several hold: free again when the last of them is done with it."""

    def __init__(self, block: bytearray, holders: int, free: _Free) -> None:
        self._block, self._holders, self._free = block, holders, free
        self._lock = threading.Lock()

    def let_go(self) -> None:
        with self._lock:
            self._holders -= 1
            is_last = self._holders == 0
        if is_last:
            self._free.give(self._block)


class _Worker:
    def __init__(self, take: Take) -> None:
        self.blocks: queue.SimpleQueue[tuple[_Shared, memoryview] | None] = queue.SimpleQueue()
        self.error: BaseException | None = None
        self._take = take
        self._thread = threading.Thread(target=self._run, name="pipeline", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self.blocks.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self.blocks.get()) is not None:
            shared, view = item
            if self.error is None:
                try:
                    self._take(view)
                except BaseException as error:  # raised by `stream`
                    self.error = error
            shared.let_go()
