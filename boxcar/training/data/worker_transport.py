"""How a batch travels from a loader's worker: through /dev/shm, or through the pipe.

torch sends tensors through /dev/shm, of which a rented container has 64 MB: six workers with two
batches each of several MB fill it, and the training dies of "No space left on device" or a bus
error. Here each worker looks at each batch. It goes through /dev/shm if all batches that may be
under way at once, on all ranks of the node, would fit in a quarter of what was free at the start;
else its bytes go through the pipe and become tensors again without a copy. The pipe costs the main
process about 1 ms per MB (with pin_memory, a thread of it). Values are the same either way.

Nothing else is put in shared memory: no `share_memory_()`, and default_collate is kept from
building a batch there before it is known to fit.

Not covered: a dataset that shares memory by itself, and who else fills /dev/shm later (a quarter
leaves room for NCCL and a second loader).
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import default_collate, get_worker_info

from boxcar.shared.disk.mounts import disk_room
from boxcar.training import torch_private
from boxcar.training.reporting.say import say_on_main, size_text

SHARED = "/dev/shm"
_USABLE_SHARE = 4
# The one the training step works on, and the one that is handed over next.
_HELD_BATCHES = 2
# Of one tensor, whose shape is counted in elements.
Content = tuple[torch.dtype, torch.Size, bytearray]


@dataclass(frozen=True)
class Room:
    """What a batch is measured against."""

    free_bytes: int | None
    """Free in /dev/shm before training; None: this system has no such limit."""
    num_workers: int
    prefetch_factor: int
    local_ranks: int
    """Ranks on this node: they share its /dev/shm."""


@dataclass(frozen=True)
class Choice:
    """The way of a batch, `shm` or `pipe`, and why, in words."""

    way: str
    reason: str


def choose(room: Room, batch_bytes: int) -> Choice:
    """The way for batches of this size; pure."""
    if room.free_bytes is None:
        return Choice("shm", f"this system has no {SHARED} that could be too small")
    count = (room.num_workers * room.prefetch_factor + _HELD_BATCHES) * room.local_ranks
    needed = count * batch_bytes
    fits = needed <= room.free_bytes // _USABLE_SHARE
    return Choice(
        "shm" if fits else "pipe",
        f"{count} batches of {size_text(batch_bytes)} at once (ranks here: {room.local_ranks}, "
        f"workers of each: {room.num_workers}, {room.prefetch_factor} ahead) "
        f"{'' if fits else 'do not '}fit in a quarter of the {size_text(room.free_bytes)} that "
        f"are free in {SHARED}",
    )


def free_shared_bytes(folder: str = SHARED) -> int | None:
    """Free bytes of /dev/shm, None where there is none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return disk_room(folder).free_bytes
    except OSError:
        return 0  # torch could not use it either


class WorkerTransport:
    """Makes a batch of samples, and in a worker decides how it travels."""

    def __init__(self, collate_fn: Callable[[list[Any]], Any] | None, room: Room) -> None:
        self.collate = collate_fn or default_collate
        self.room = room
        self._said: set[str] = set()

    def __call__(self, samples: list[Any]) -> Any:
        """The batch, or the one that becomes it when it is unpickled in the main process."""
        if get_worker_info() is None:
            return self.collate(samples)
        with torch_private.no_worker_info():
            batch = self.collate(samples)
        parts = take_apart(batch)
        choice = parts.choice(self.room)
        self._say(choice)
        return batch if choice.way == "shm" else PipedBatch(parts)

    def _say(self, choice: Choice) -> None:
        info = get_worker_info()
        if choice.way in self._said or info is None or info.id != 0:
            return
        self._said.add(choice.way)
        through = {"shm": SHARED, "pipe": "the pipe"}[choice.way]
        say_on_main(f"loader: batches travel through {through}: {choice.reason}")


@dataclass
class Parts:
    """A batch as a pickle without its tensors, wherever in it they are, and the tensors."""

    skeleton: bytes
    tensors: list[Tensor]
    is_measured: bool
    """No tensor is of a kind that stays in the skeleton: sparse, a subclass, on a GPU."""

    def choice(self, room: Room) -> Choice:
        """The way that this batch must go."""
        if not self.is_measured:
            return Choice("pipe", "a batch has a tensor of a special kind, whose size is not known")
        # Of a view, torch shares all that it is a view of.
        sizes = (max(t.nbytes, t.untyped_storage().nbytes()) for t in self.tensors)
        return choose(room, sum(sizes))


def take_apart(batch: Any) -> Parts:
    """Raises what pickle raises where the batch holds something that cannot be sent at all."""
    buffer = io.BytesIO()
    pickler = _WithoutTensors(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dump(batch)
    return Parts(buffer.getvalue(), pickler.tensors, pickler.is_measured)


class _WithoutTensors(pickle.Pickler):
    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        self.tensors: list[Tensor] = []
        self.is_measured = True

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, Tensor):
            return None
        if not _is_plain(value):
            self.is_measured = False
            return None  # pickled with its bytes, slowly, but never through shared memory
        self.tensors.append(value)
        return len(self.tensors) - 1


def _is_plain(tensor: Tensor) -> bool:
    return (
        type(tensor) is Tensor
        and tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not (tensor.requires_grad or tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
    )


class PipedBatch:
    """A batch on its way: pickled as bytes, unpickled as what it was."""

    def __init__(self, parts: Parts) -> None:
        self.skeleton, self.contents = parts.skeleton, [_content(t) for t in parts.tensors]

    def __reduce__(self) -> tuple[Any, ...]:
        return _put_together, (self.skeleton, self.contents)


def _content(tensor: Tensor) -> Content:
    # Not through NumPy: it may be missing, and has no bfloat16.
    content = bytearray(tensor.nbytes)
    if content:
        room = torch.frombuffer(content, dtype=tensor.dtype)
        room.view(tensor.shape).copy_(tensor)
    return tensor.dtype, tensor.shape, content


def _put_together(skeleton: bytes, contents: list[Content]) -> Any:
    return _WithTensors(skeleton, contents).load()


class _WithTensors(pickle.Unpickler):
    def __init__(self, skeleton: bytes, contents: list[Content]) -> None:
        super().__init__(io.BytesIO(skeleton))
        self._contents = contents

    def persistent_load(self, number: int) -> Tensor:
        dtype, shape, content = self._contents[number]
        if not content:
            return torch.empty(shape, dtype=dtype)
        # The tensor lives in the bytes that came: no copy.
        return torch.frombuffer(content, dtype=dtype).view(shape)
