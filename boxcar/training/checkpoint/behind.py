"""What a save does behind the training: a copy in memory, and one thread that works through it."""

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


# --- the copy


def copy_to_cpu(state: Any) -> tuple[Any, Callable[[], None]]:
    """The same nested containers in CPU memory, for a thread that writes while training goes on;
    and what blocks that thread until all of it has arrived.

    From a GPU the copy runs behind the steps on the same stream, into pinned memory.

        copied, arrived = copy_to_cpu(state.state_dict())
    """
    seen: dict[Any, torch.Tensor] = {}
    copied = _copied(state, seen)
    if not any(_own(copy).is_pinned() for copy in seen.values()):
        return copied, lambda: None
    event = torch.cuda.Event()
    event.record()
    return copied, event.synchronize


def _copied(value: Any, seen: dict[Any, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return _copied_tensor(value, seen)
    if isinstance(value, Mapping):
        return _like(value, {key: _copied(item, seen) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        items = [_copied(item, seen) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def _copied_tensor(tensor: torch.Tensor, seen: dict[Any, torch.Tensor]) -> torch.Tensor:
    # Weights that two layers share are one tensor in the file, too.
    own = _own(tensor)
    place = (own.data_ptr(), own.shape, own.stride(), own.dtype, own.device)
    if own.numel() and place in seen:
        return seen[place]
    if hasattr(tensor, "placements"):
        copy = tensor.detach().to("cpu", copy=True)
    else:
        copy = torch.empty_like(own, device="cpu", pin_memory=own.is_cuda)
        copy.copy_(own, non_blocking=True)
    seen[place] = copy
    return copy


def _own(tensor: torch.Tensor) -> torch.Tensor:
    """Of a DTensor, what lies on this rank."""
    own: Any = tensor.detach()
    # What only a DTensor has: to import it takes half a second.
    return own.to_local() if hasattr(tensor, "placements") else own  # type: ignore[no-any-return]


def _like(original: Mapping[Any, Any], copied: dict[Any, Any]) -> Any:
    versions = torch_private.versions(original)
    if versions is None:
        return copied
    like: Any = type(original)
    return torch_private.with_versions(like(copied), versions)
