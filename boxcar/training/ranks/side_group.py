"""A line of its own between the ranks, for what they must agree on beside the training.

Gloo on the CPU, so that it neither waits for the GPU nor mixes with the messages of a step. Values
travel as JSON, states as bytes of torch.save: no pickle of a peer is trusted.

All ranks make their groups and call their methods in the same order.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from boxcar.shared import errors
from boxcar.shared.errors import BoxcarError, InputError, TemporaryError
from boxcar.training import stall

T = TypeVar("T")

# A rank that has died is noticed at once, by its closed connection. This is for rank 0 that writes
# a large checkpoint to a slow disk while the others wait.
PATIENCE_S = 3600.0
# What is sent at first, so that one collective will do for nearly all: a size and what it counts.
# The longest that each save sends is a rank's random state, some 20 kB.
_BOX_BYTES, _SIZE_BYTES = 32 * 1024, 8
_ROOM_BYTES = _BOX_BYTES - _SIZE_BYTES


class SideGroup:
    """A gloo group of all ranks; without a process group, one rank that talks to itself."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._group: Callable[[], Any] | None = None
        self.rank, self.world = 0, 1
        if _is_joined():
            self.rank, self.world = dist.get_rank(), dist.get_world_size()
            # A rank that leaves just now breaks this already.
            with self.waiting():
                group = dist.new_group(backend="gloo", timeout=timedelta(seconds=patience_s))
            # torch holds it until destroy_process_group. A second strong reference would keep its
            # threads beyond that, and they abort an interpreter that ends.
            self._group = weakref.ref(group)

    @property
    def group(self) -> Any:
        """The process group, None for a rank that is alone without one.

        Raises TemporaryError when it was destroyed already.
        """
        if self._group is None:
            return None
        group = self._group()
        if group is None:
            raise TemporaryError(
                "the ranks have left their process group: save before calling ranks.leave"
            )
        return group

    @property
    def is_current(self) -> bool:
        """False once the process group that it was made in was destroyed, or one was made since."""
        if self._group is None:
            return not _is_joined()
        group = self._group()
        try:
            # Somebody may hold a destroyed one still.
            return group is not None and bool(dist.get_process_group_ranks(group))
        except (KeyError, ValueError):
            return False

    def tell(self, value: Any = None) -> Any:
        """Rank 0's value, a JSON one, on all ranks."""
        if self.world == 1:
            return value
        data = json.dumps(value).encode() if self.rank == 0 else b""
        box = _boxed(data)
        self._do(dist.broadcast, box, 0)
        size_bytes, begin = _unboxed(box)
        if size_bytes <= _ROOM_BYTES:
            return json.loads(begin)
        rest = _as_tensor(data[_ROOM_BYTES:].ljust(size_bytes - _ROOM_BYTES))
        self._do(dist.broadcast, rest, 0)
        return json.loads(begin + _as_bytes(rest))

    def gather(self, data: bytes) -> list[bytes]:
        """The bytes of each rank, on all ranks."""
        if self.world == 1:
            return [data]
        boxes = [torch.empty(_BOX_BYTES, dtype=torch.uint8) for _ in range(self.world)]
        self._do(dist.all_gather, boxes, _boxed(data))
        found = [_unboxed(box) for box in boxes]
        longest = max(size_bytes for size_bytes, _ in found) - _ROOM_BYTES
        if longest <= 0:
            return [begin for _, begin in found]
        rests = [torch.empty(longest, dtype=torch.uint8) for _ in range(self.world)]
        self._do(dist.all_gather, rests, _as_tensor(data[_ROOM_BYTES:].ljust(longest, b"\0")))
        whole = zip(found, map(_as_bytes, rests), strict=True)
        return [(begin + rest)[:size_bytes] for (size_bytes, begin), rest in whole]

    def on_main(self, work: Callable[[], T]) -> T:
        """What `work` returned on rank 0, a JSON value; an error there is raised on all ranks."""
        error, message = _tried(work) if self.rank == 0 else (None, None)
        message = self.tell(message)
        if error is not None:
            raise error
        _raise_if_error(message)
        return message["value"]  # type: ignore[no-any-return]

    def everywhere(self, work: Callable[[], T]) -> list[T]:
        """What `work` returned on each rank, JSON values; all raise the first rank's error."""
        error, mine = _tried(work)
        messages = [json.loads(data) for data in self.gather(json.dumps(mine).encode())]
        for rank, message in enumerate(messages):
            if error is not None and rank == self.rank:
                raise error
            _raise_if_error(message, rank)
        return [message["value"] for message in messages]

    def together(self, problems: list[str]) -> None:
        """Raise InputError on all ranks if one of them has problems; each is said once."""
        found = [json.loads(data) for data in self.gather(json.dumps(problems).encode())]
        everywhere = [problem for problem in found[0] if all(problem in other for other in found)]
        named = [
            f"rank {rank}: {problem}"
            for rank, of_rank in enumerate(found)
            for problem in of_rank
            if problem not in everywhere
        ]
        if everywhere or named:
            raise InputError([*everywhere, *named])

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Around collectives of the group: patient, and a broken one is a TemporaryError."""
        try:
            with patient():
                yield
        except RuntimeError as error:
            if self.world == 1:
                raise
            raise left(error) from error

    def _do(self, collective: Callable[..., Any], *tensors: Any) -> None:
        with self.waiting():
            collective(*tensors, group=self.group)


def patient() -> AbstractContextManager[None]:
    """stall.patient, but for the main thread alone: a thread that saves beside it must not keep the
    watch from the steps."""
    is_main = threading.current_thread() is threading.main_thread()
    return stall.patient() if is_main else contextlib.nullcontext()


def left(error: RuntimeError) -> TemporaryError:
    """A collective failed: in plain words."""
    reason = str(error).strip().splitlines()[0][:200]
    return TemporaryError(
        "another rank has left or does not answer: its own log says why; the ranks that are left "
        f"cannot go on without it ({reason})"
    )


def _boxed(data: bytes) -> torch.Tensor:
    size = len(data).to_bytes(_SIZE_BYTES, "little")
    return _as_tensor((size + data[:_ROOM_BYTES]).ljust(_BOX_BYTES, b"\0"))


def _unboxed(box: torch.Tensor) -> tuple[int, bytes]:
    """How many bytes there are, and those of them that are in the box."""
    data = _as_bytes(box)
    size_bytes = int.from_bytes(data[:_SIZE_BYTES], "little")
    return size_bytes, data[_SIZE_BYTES:][:size_bytes]


def _as_tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0).byte()


def _as_bytes(box: torch.Tensor) -> bytes:
    # Not by numpy, which may be missing.
    return ctypes.string_at(box.data_ptr(), box.numel()) if box.numel() else b""


def _is_joined() -> bool:
    return dist.is_available() and dist.is_initialized()


def _tried(work: Callable[[], Any]) -> tuple[Exception | None, dict[str, Any]]:
    """The error and what is said of it, or what `work` returned."""
    try:
        return None, {"value": work()}
    except Exception as error:
        return error, _spelled(error)


def _spelled(error: Exception) -> dict[str, Any]:
    kind, text = type(error).__name__, str(error) or type(error).__name__
    return {"error": kind, "text": error.problems if type(error) is InputError else text}


def _raise_if_error(message: dict[str, Any], rank: int = 0) -> None:
    if "error" not in message:
        return
    kind, text = getattr(errors, message["error"], None), message["text"]
    if isinstance(kind, type) and issubclass(kind, BoxcarError):
        raise kind(text)
    raise BoxcarError(f"rank {rank}: {message['error']}: {text}")
