"""What is left to do behind a save, in one thread, in the order of the saves."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import torch

from boxcar.training import torch_private
from boxcar.training.ranks import side_group
from boxcar.training.reporting.say import say

# A copy of a state in CPU memory, from which a thread writes while training goes on.
#
# The memory is kept for the next copy: fresh pages cost more than the copying. It is as large as
# the state, once. From a GPU the copy runs behind the steps on the same stream, into pinned memory.


class Snapshot:
    """Takes one copy at a time; the one before must not be in use any more."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[Any, ...], torch.Tensor] = {}
        self._event: torch.cuda.Event | None = None

    def take(self, state: Any) -> Any:
        """The same nested containers; its tensors are complete after `wait`."""
        old, self._buffers, self._event = self._buffers, {}, None
        copied = self._copied(state, (), old, {})
        if any(_own(buffer).is_pinned() for buffer in self._buffers.values()):
            self._event = torch.cuda.Event()
            self._event.record()
        return copied

    def wait(self) -> None:
        """Block until all has arrived; for the thread that writes."""
        if self._event is not None:
            self._event.synchronize()

    def _copied(
        self, value: Any, at: tuple[Any, ...], old: Any, seen: dict[Any, torch.Tensor]
    ) -> Any:
        if isinstance(value, torch.Tensor):
            return self._copied_tensor(value, at, old, seen)
        if isinstance(value, Mapping):
            copied = {k: self._copied(v, (*at, k), old, seen) for k, v in value.items()}
            return _like(value, copied)
        if isinstance(value, (list, tuple)):
            items = [self._copied(item, (*at, i), old, seen) for i, item in enumerate(value)]
            return items if isinstance(value, list) else tuple(items)
        return value

    def _copied_tensor(
        self, tensor: torch.Tensor, at: tuple[Any, ...], old: Any, seen: dict[Any, torch.Tensor]
    ) -> torch.Tensor:
        # Weights that two layers share are one tensor in the file, too.
        own = _own(tensor)
        place = (own.data_ptr(), own.shape, own.stride(), own.dtype, own.device)
        if own.numel() and place in seen:
            return seen[place]
        buffer: torch.Tensor | None = old.get(at)
        if buffer is None or not _fits(buffer, tensor):
            buffer = _buffer(tensor)
        _own(buffer).copy_(own, non_blocking=True)
        self._buffers[at] = seen[place] = buffer
        return buffer


def _own(tensor: torch.Tensor) -> torch.Tensor:
    """Of a DTensor, what lies on this rank."""
    own: Any = tensor.detach()
    return own.to_local() if _is_sharded(tensor) else own  # type: ignore[no-any-return]


def _is_sharded(tensor: torch.Tensor) -> bool:
    # What only a DTensor has: to import it takes half a second.
    return hasattr(tensor, "placements")


def _fits(buffer: torch.Tensor, tensor: torch.Tensor) -> bool:
    if _is_sharded(buffer) != _is_sharded(tensor):
        return False
    # A mesh of ranks that have left since would still be in the buffer.
    names = ("shape", "dtype") + (("device_mesh", "placements") if _is_sharded(tensor) else ())
    return all(getattr(buffer, name) == getattr(tensor, name) for name in names)


def _buffer(tensor: torch.Tensor) -> torch.Tensor:
    if _is_sharded(tensor):
        return tensor.detach().to("cpu", copy=True)
    return torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda, requires_grad=False)


def _like(original: Mapping[Any, Any], copied: dict[Any, Any]) -> Any:
    versions = torch_private.versions(original)
    if versions is None:
        return copied
    like: Any = type(original)
    return torch_private.with_versions(like(copied), versions)


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
