"""What a sample draws: its own in each epoch, the same whoever reads it, and nobody's business."""

from __future__ import annotations

import random
from typing import Any

import numpy
import torch
from torch.utils.data import Dataset, StackDataset, Subset, TensorDataset

from boxcar.training.data.sample_seeds import SeededSamples, draws_nothing, reads_batches, seed_of


def draws() -> tuple[float, ...]:
    return random.random(), float(numpy.random.rand()), float(torch.rand(()))


class Noise(Dataset[Any]):
    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> Any:
        return index, *draws()


class NoiseInBatches(Noise):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


def read(indices: list[int], *, epoch: int = 0, seed: int = 0, dataset: Any = None) -> list[Any]:
    return SeededSamples(dataset or Noise(), seed).read((epoch, indices))


def test_a_sample_draws_the_same_whatever_was_read_before_it() -> None:
    assert read([5, 6, 7])[2] == read([7])[0] == read([1, 7, 9])[1]


def test_samples_epochs_and_seeds_draw_differently_from_each_generator() -> None:
    rows = [
        *read([1, 2]),
        *read([1, 2], epoch=1),
        *read([1, 2], seed=1),
        *read([1, 2], epoch=2, seed=-1),
    ]
    for column in range(1, 4):
        assert len({row[column] for row in rows}) == len(rows)


def test_seeds_are_distinct() -> None:
    values = {seed_of(s, e, i) for s in range(5) for e in range(20) for i in range(-1, 200)}
    assert len(values) == 5 * 20 * 201
    assert all(0 <= value < 2**64 for value in values)


def test_seeds_are_the_same_on_every_machine() -> None:
    assert seed_of(0, 0, 0) == SEED_OF_NOTHING
    assert seed_of(2**80, 0, 0) == SEED_OF_NOTHING  # any whole number is a seed


SEED_OF_NOTHING = 2891389769238885931


def test_a_dataset_that_reads_batches_is_seeded_by_the_batch() -> None:
    dataset = NoiseInBatches()
    first = read([4, 5], dataset=dataset)
    assert first == read([4, 5], dataset=dataset)
    assert first[0] == read([4], dataset=dataset)[0]
    assert first != read([4, 5], epoch=1, dataset=dataset)
    assert first[1] != read([5], dataset=dataset)[0]


def test_torchs_own_wrappers_pass_single_samples_on() -> None:
    subset = Subset(Noise(), [7, 8, 9])
    assert not reads_batches(subset) and not reads_batches(Subset(subset, [0]))
    assert not reads_batches(StackDataset(Noise(), Noise()))
    assert reads_batches(Subset(NoiseInBatches(), [1]))
    assert reads_batches(StackDataset(a=Noise(), b=NoiseInBatches()))
    # By the index in the subset, which is what the order is made of.
    assert read([0, 1], dataset=subset)[1][1:] == read([1])[0][1:]


class Still(Noise):
    draws_nothing = True


def test_what_draws_nothing_is_what_is_known_or_says_so() -> None:
    tensors = TensorDataset(torch.zeros(4, 2))
    for still in (tensors, Subset(tensors, [1, 2]), Still(), Subset(Still(), [0])):
        assert draws_nothing(still)
    assert not draws_nothing(Noise()) and not draws_nothing(Subset(Noise(), [1]))
    # What another class does with its tensors nobody knows.
    assert not draws_nothing(type("Mine", (TensorDataset,), {})(torch.zeros(4)))


def test_what_is_not_to_be_seeded_draws_on_from_where_the_generators_are() -> None:
    random.seed(5)
    expected = [random.random() for _ in range(2)]
    random.seed(5)
    found = SeededSamples(Noise(), 0, is_seeded=False).read((0, [3, 1]))
    assert [row[1] for row in found] == expected
