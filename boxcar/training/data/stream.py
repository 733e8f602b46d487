"""A stream (IterableDataset) that all ranks and workers read, each element seen exactly once.

A stream is taken to be the same in every process, as a file is. Each worker reads it in chunks of a
global batch, hands on its rank's share of every n-th chunk and drops the rest. So, as with a
map-style dataset, the batches depend neither on the number of workers nor of ranks, a run goes on
exactly by counting, and every rank knows by itself where the stream ends. The price is that each
worker reads all of it. A stream that is expensive to read shards itself:

    dataset.shard(num_shards=n, index=i)   gives the i-th of n parts, as Hugging Face's datasets do

Then worker w of rank r reads part r * workers + w and nothing else, and a run goes on exactly only
with as many ranks and workers. `dataset.set_epoch(epoch)` is called where there is one. Draws are
seeded chunk by chunk, so a shuffle buffer gives the same order in every process.

The order is the stream's own: `shuffle` has no effect. `get_worker_info()` is None inside a stream,
so one that would give each worker a part (Hugging Face's do), and be divided once more, does not.

Not covered: a stream that by itself gives each rank something else (through RANK, say): it looks
like one that is the same everywhere, and elements are lost; give it a `shard` method.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from torch.utils.data import get_worker_info

from boxcar.shared.errors import InputError
from boxcar.training import torch_private
from boxcar.training.data import sample_seeds
from boxcar.training.data.sample_seeds import seed_of
from boxcar.training.data.sampler import EpochSampler, problem_of_ranks, share_of
from boxcar.training.reporting.say import say

# A skip that takes longer than this is worth a line.
_SAID_AFTER_S = 1.0
_START = -1


class Ended:
    """What a worker answers when its stream has no batch for a turn."""


@dataclass(frozen=True)
class StreamShares:
    """How a stream is divided; `num_workers` counts the main process where there are none."""

    batch_size: int
    """Per rank."""
    rank: int
    world: int
    num_workers: int
    uneven: str
    shards_itself: bool

    @property
    def chunk(self) -> int:
        """Elements that are read for one turn."""
        return self.batch_size * (1 if self.shards_itself else self.world)

    def problem(self) -> str:
        """Why this cannot be, in a sentence; empty where it can."""
        problem = problem_of_ranks(self.batch_size, self.rank, self.world, self.uneven)
        if problem:
            return problem
        if self.shards_itself and self.uneven != "drop":
            return (
                f"the dataset shards itself (it has a `shard` method), so nobody knows the end of "
                f"all its parts, and uneven={self.uneven!r} cannot be: use uneven='drop'"
            )
        return ""


class TurnSampler(EpochSampler):
    """The position in a stream; a key is (epoch, turn, is_done), and turn n is for worker n % W."""

    def __init__(self, shares: StreamShares, *, seed: int) -> None:
        super().__init__()
        if problem := shares.problem():
            raise InputError(problem)
        self.shares, self.seed = shares, seed

    @property
    def first_turn(self) -> int:
        """Worker 0 gets the first key of a loop, so keys begin with one of worker 0's turns."""
        return self.batches_done - self.batches_done % self.shares.num_workers

    def keys(self, epoch: int, batches_done: int) -> Iterator[tuple[int, int, bool]]:
        """Without end: only the stream knows it."""
        turn = batches_done - batches_done % self.shares.num_workers
        while True:
            yield epoch, turn, turn < batches_done
            turn += 1

    def indices(self, batch: int) -> range:
        """Elements have no index: they are counted, as if every batch were full."""
        first = (batch * self.shares.world + self.shares.rank) * self.shares.batch_size
        return range(first, first + self.shares.batch_size)

    def identity(self) -> dict[str, Any]:
        """`parts`: the ranks (x workers) that a position depends on; 0 where it does not."""
        shares = self.shares
        # Of a joined stream the last batch: it takes up fewer elements than there are ranks.
        parts = shares.world if shares.uneven == "join" else 0
        if shares.shards_itself:
            parts = shares.world * shares.num_workers
        return {
            "seed": self.seed,
            "uneven": shares.uneven,
            "global_batch": shares.batch_size * shares.world,
            "parts": parts,
        }

    def advice(self, name: str, state: Any) -> str:
        """What `parts` are."""
        if name == "parts":
            return (
                "of a stream that shards itself the ranks x workers must stay as they were, and of "
                "one with uneven='join' the ranks"
            )
        return super().advice(name, state)


class StreamReader:
    """One process's view of the stream: chunk after chunk, forward only."""

    is_seeded = True

    def __init__(self, dataset: Any, shares: StreamShares, seed: int) -> None:
        self.dataset, self.shares, self.seed = dataset, shares, seed
        self._place: tuple[int, int, int] | None = None
        self._chunks: Iterator[list[Any]] = iter(())
        self._speaks = self._said = False

    def read(self, key: tuple[int, int, bool]) -> list[Any] | Ended:
        """This rank's elements of a turn, or Ended."""
        epoch, turn, is_done = key
        if is_done:
            return Ended()
        stream, number = turn % self._stride, turn // self._stride
        info = get_worker_info()
        self._speaks = self.shares.rank == 0 and (info is None or info.id == 0)
        with torch_private.no_worker_info():
            self._go_to(epoch, stream, number)
            chunk = next(self._chunks, [])
        self._place = epoch, stream, number + 1
        if not self.shares.shards_itself:
            chunk = chunk[share_of(len(chunk), self.shares.rank, self.shares.world)]
        return chunk or Ended()

    @property
    def _stride(self) -> int:
        """How many streams there are side by side in this rank."""
        return self.shares.num_workers if self.shares.shards_itself else 1

    def _go_to(self, epoch: int, stream: int, number: int) -> None:
        # Unknown until the chunk has come: after an error a stream would seem to be at its end.
        place, self._place = self._place, None
        if place is None or place[:2] != (epoch, stream) or place[2] > number:
            self._chunks = self._open(epoch, stream)
            place = epoch, stream, 0
        self._skip(number - place[2])

    def _skip(self, chunks: int) -> None:
        started = time.monotonic()
        for _ in islice(self._chunks, chunks):
            pass
        took_s = time.monotonic() - started
        if took_s > _SAID_AFTER_S and self._speaks:
            elements = chunks * self.shares.chunk
            say(f"loader: read over {elements} elements that were done before, in {took_s:.1f} s")

    def _open(self, epoch: int, stream: int) -> Iterator[list[Any]]:
        dataset = self.dataset
        if self.shares.shards_itself:
            parts = self.shares.world * self.shares.num_workers
            part = self.shares.rank * self.shares.num_workers + stream
            dataset = dataset.shard(num_shards=parts, index=part)
        if hasattr(dataset, "set_epoch"):
            dataset.set_epoch(epoch)
        sample_seeds.seed_generators(seed_of(self.seed, epoch, _START))
        return self._even(self._read_chunks(iter(dataset), epoch, stream))

    def _read_chunks(self, elements: Iterator[Any], epoch: int, stream: int) -> Iterator[list[Any]]:
        number = 0
        while True:
            # By the chunk and not by the element: all processes read all chunks, one after another.
            sample_seeds.seed_generators(
                seed_of(self.seed, epoch, self._seed_index(number, stream))
            )
            chunk = list(islice(elements, self.shares.chunk))
            if not chunk:
                return
            yield chunk
            number += 1

    def _seed_index(self, number: int, stream: int) -> int:
        if not self.shares.shards_itself:
            return number
        turn = number * self._stride + stream
        return turn * self.shares.world + self.shares.rank

    def _even(self, chunks: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """What becomes of an unfilled last chunk, so that every rank has as many batches."""
        if self.shares.uneven == "join":
            yield from _join_few(chunks, self.shares.world)
            return
        for chunk in chunks:
            missing = self.shares.chunk - len(chunk)
            if missing and self._speaks and not self._said:
                self._said = True
                self._say_end(len(chunk), missing)
            if not missing:
                yield chunk
            elif self.shares.uneven == "pad":
                yield [*chunk, *islice(cycle(chunk), missing)]

    def _say_end(self, rest: int, missing: int) -> None:
        if self.shares.uneven == "pad":
            say(f"loader: the epoch's last batch was filled up with {missing} repeated elements")
        else:
            where = " of part 0" if self.shares.shards_itself else ""
            say(
                f"loader: {rest} elements at the end{where} fill no batch and are left out of "
                "the epoch"
            )


def shards_itself(dataset: Any) -> bool:
    """Whether the stream gives its parts by itself."""
    return callable(getattr(dataset, "shard", None))


def _join_few(chunks: Iterator[list[Any]], world: int) -> Iterator[list[Any]]:
    """Chunks, of which a last one of fewer than one element a rank is added to the one before."""
    held = next(chunks, None)
    if held is not None and len(held) < world:
        raise InputError(f"the stream has {len(held)} elements, too few for {world} ranks")
    for chunk in chunks:
        if len(chunk) < world:
            held = [*(held or []), *chunk]
            break
        if held is not None:
            yield held
        held = chunk
    if held is not None:
        yield held
