"""What a sample draws depends on (seed, epoch, index) alone: not on workers, ranks or kills.

Before a sample is read, the generators of python, NumPy and torch (the CPU's) are seeded from these
three numbers, so an augmentation differs from sample to sample and from epoch to epoch, and a
resumed epoch draws what it drew before. In the main process (num_workers=0) the generators get
their own state back after each batch: the model's dropout does not notice the loader.

A dataset with `__getitems__` reads a whole batch in one call, so it is seeded once a batch, by the
batch's first index: the same on every resume, but other draws where another number of ranks makes
other batches.

A dataset that draws nothing needs none of this. Of torch's TensorDataset, and of a Subset of one,
that is known; another class says so by `draws_nothing = True`, and the first batch that each
process reads is held to it (batches.py).

Not covered: generators of other libraries, generators that a dataset keeps for itself (make them
from `torch.initial_seed()` inside `__getitem__`), numbers that it drew once and keeps, and draws on
the GPU.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import struct
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils.data import StackDataset, Subset, TensorDataset

# --- The generators of python, NumPy and torch (the CPU's): seeded, and put back.


# Imported before the first sample, not when a dataset does: that one would draw unseeded numbers.
numpy: ModuleType | None
try:
    import numpy
except ImportError:  # torch works without it, and then nobody draws from it
    numpy = None


def seed_generators(value: int) -> None:
    """Seed all three; 7 us on a 3 GHz core."""
    random.seed(value)
    # Not torch.manual_seed: it reseeds the GPUs too, and takes 130 us.
    torch.default_generator.manual_seed(value)
    if numpy is not None:
        numpy.random.seed(value & 0xFFFFFFFF)  # an array of 64 bits would take 8 us


@contextlib.contextmanager
def own_draws() -> Iterator[None]:
    """Draws inside leave no trace outside: all three generators get their state back."""
    of_python, of_torch = random.getstate(), torch.default_generator.get_state()
    of_numpy = None if numpy is None else numpy.random.get_state(legacy=False)
    try:
        yield
    finally:
        random.setstate(of_python)
        torch.default_generator.set_state(of_torch)
        if numpy is not None:
            numpy.random.set_state(of_numpy)


def generator_states() -> dict[str, Any]:
    """Of each generator, to be compared with a later one."""
    found: dict[str, Any] = {
        "random": random.getstate(),
        "torch": torch.default_generator.get_state().tolist(),
    }
    if numpy is not None:
        _, keys, *rest = numpy.random.get_state(legacy=True)
        found["numpy"] = (keys.tolist(), rest)
    return found


_64_BITS = 2**64 - 1


def seed_of(seed: int, epoch: int, index: int) -> int:
    """64 bits that are as good as random for each triple, the same on every machine."""
    # Any whole number may be a seed; -1 is used as an index by whoever needs draws beside samples'.
    packed = struct.pack("<QQQ", *(number & _64_BITS for number in (seed, epoch, index)))
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little")


class SeededSamples:
    """A map-style dataset that is asked for a batch by (epoch, indices)."""

    def __init__(self, dataset: Any, seed: int, *, is_seeded: bool = True) -> None:
        self.dataset, self.seed, self.is_seeded = dataset, seed, is_seeded
        self._reads_batches = reads_batches(dataset)

    def read(self, key: tuple[int, Sequence[int]]) -> list[Any]:
        """The samples of one batch, in the order of its indices."""
        epoch, indices = key
        if self._reads_batches:
            self._seed(epoch, indices[0])
            samples: list[Any] = self.dataset.__getitems__(indices)
            return samples
        if not self.is_seeded:
            dataset = self.dataset
            return [dataset[index] for index in indices]
        return [self._sample(epoch, index) for index in indices]

    def _sample(self, epoch: int, index: int) -> Any:
        self._seed(epoch, index)
        return self.dataset[index]

    def _seed(self, epoch: int, index: int) -> None:
        if self.is_seeded:
            seed_generators(seed_of(self.seed, epoch, index))


def draws_nothing(dataset: Any) -> bool:
    """Whether no sample draws: known of torch's own, of other classes what they say."""
    if type(dataset) is Subset:
        return draws_nothing(dataset.dataset)
    return type(dataset) is TensorDataset or getattr(dataset, "draws_nothing", False) is True


def reads_batches(dataset: Any) -> bool:
    """Whether `__getitems__` reads a batch at once, and does not only pass single samples on."""
    own = getattr(type(dataset), "__getitems__", None)
    # Both of torch's have the method always, also around datasets that have none.
    if own is Subset.__getitems__:
        return reads_batches(dataset.dataset)
    if own is StackDataset.__getitems__:
        parts = dataset.datasets
        return any(map(reads_batches, parts.values() if isinstance(parts, dict) else parts))
    return callable(own)
