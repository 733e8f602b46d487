"""What a sample draws depends on (seed, epoch, index) alone: not on workers, ranks or kills.

Before a sample is read, the generators of python, NumPy and torch (the CPU's) are seeded from these
three numbers, so an augmentation differs from sample to sample and from epoch to epoch, and a
resumed epoch draws what it drew before. In the main process (num_workers=0) the generators get
their own state back after each batch: the model's dropout does not notice the loader.

A dataset with `__getitems__` reads a whole batch in one call, so it is seeded once a batch, by the
batch's first index: the same on every resume, but other draws where another number of ranks makes
other batches.

What nobody draws from is not seeded (batches.py), so a batch may be read once more, with what was
drawn seeded.

Not covered: generators of other libraries, generators that a dataset keeps for itself (make them
from `torch.initial_seed()` inside `__getitem__`), numbers that it drew once and keeps, the methods
of `torch.default_generator`, and draws on the GPU.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Any

from torch.utils.data import StackDataset, Subset

from boxcar.training.data import generators

_64_BITS = 2**64 - 1


def seed_of(seed: int, epoch: int, index: int) -> int:
    """64 bits that are as good as random for each triple, the same on every machine."""
    # Any whole number may be a seed; -1 is used as an index by whoever needs draws beside samples'.
    packed = struct.pack("<QQQ", *(number & _64_BITS for number in (seed, epoch, index)))
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little")


class SeededSamples:
    """A map-style dataset that is asked for a batch by (epoch, indices)."""

    def __init__(self, dataset: Any, seed: int) -> None:
        self.dataset, self.seed = dataset, seed
        self._reads_batches = reads_batches(dataset)

    def read(
        self, key: tuple[int, Sequence[int]], which: frozenset[str] = generators.ALL
    ) -> list[Any]:
        """The samples of one batch, in the order of its indices; `which` generators are seeded."""
        epoch, indices = key
        dataset = self.dataset
        if self._reads_batches:
            self._seed(epoch, indices[0], which)
            samples: list[Any] = dataset.__getitems__(indices)
            return samples
        if not which:
            return [dataset[index] for index in indices]
        return [self._sample(epoch, index, which) for index in indices]

    def seed_last(self, key: tuple[int, Sequence[int]]) -> None:
        """As all are after `read` where its last sample, or its batch, has drawn nothing."""
        epoch, indices = key
        self._seed(epoch, indices[0 if self._reads_batches else -1], generators.ALL)

    def _sample(self, epoch: int, index: int, which: frozenset[str]) -> Any:
        self._seed(epoch, index, which)
        return self.dataset[index]

    def _seed(self, epoch: int, index: int, which: frozenset[str]) -> None:
        if which:
            generators.seed(seed_of(self.seed, epoch, index), which)


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
