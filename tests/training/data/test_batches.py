"""A batch of what may draw: the same, whatever its process has read before."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch.utils.data import Dataset

from boxcar.shared.errors import InputError
from boxcar.training.data import sample_seeds
from boxcar.training.data.loader import Batches
from boxcar.training.data.sample_seeds import SeededSamples, draws_nothing
from boxcar.training.data.worker_transport import Room, WorkerTransport


def drawn_in_a_fork() -> float:
    with torch.random.fork_rng():
        return torch.rand(()).item()


DRAWS: dict[str, Callable[[], float]] = {
    "python": random.random,
    "gauss": lambda: random.gauss(0, 1),
    "numpy": lambda: float(numpy.random.rand()),
    "normals": lambda: float(numpy.random.randn()),
    "torch": lambda: torch.rand(()).item(),
    "a generator from torch's seed": lambda: random.Random(torch.initial_seed()).random(),
    "what is taken back": drawn_in_a_fork,
}


class Items(Dataset[Any]):
    """Those at and after `first` draw."""

    def __init__(self, draw: Callable[[], float] = random.random, first: int = 0) -> None:
        self.draw, self.first, self.reads = draw, first, list[int]()

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> float:
        self.reads.append(index)
        return index + (self.draw() if index >= self.first else 0.0)


class Still(Items):
    """Says that it draws nothing, which is so below `first`."""

    draws_nothing = True


def batches_of(dataset: Any, collate: Callable[[list[Any]], Any] | None = list) -> Batches:
    source = SeededSamples(dataset, 7, is_seeded=not draws_nothing(dataset))
    return Batches(source, WorkerTransport(collate, Room(None, 0, 2, 1)))


def seeded(dataset: Any, indices: list[int]) -> list[Any]:
    """One sample after another, each by itself."""
    with sample_seeds.own_draws():
        return [SeededSamples(dataset, 7).read((1, [index]))[0] for index in indices]


@pytest.mark.parametrize("first", [0, 3, 5, 6])
@pytest.mark.parametrize("name", DRAWS)
def test_samples_are_those_of_their_own_seeds_in_each_batch(name: str, first: int) -> None:
    batches = batches_of(Items(DRAWS[name], first))
    for indices in ([1, 2, 3], [4, 5], [2], [1, 2], [5, 6], [0, 9]):
        assert batches.__getitems__((1, indices)) == seeded(Items(DRAWS[name], first), indices)


@pytest.mark.parametrize("first", [0, 2, 99])
def test_each_sample_is_read_once_whether_it_draws_or_not(first: int) -> None:
    items = Items(first=first)
    batches = batches_of(items)
    for indices in ([0, 1], [2, 3], [4, 5]):
        batches.__getitems__((1, indices))
    assert items.reads == [0, 1, 2, 3, 4, 5]


def test_nothing_of_random_numpy_or_torch_is_replaced_by_reading() -> None:
    asked = ((random, "getstate"), (numpy.random, "set_state"), (torch, "initial_seed"))
    before = [getattr(module, name) for module, name in asked]
    batches_of(Items()).__getitems__((1, [0, 1]))
    assert [getattr(module, name) for module, name in asked] == before
    assert torch.initial_seed.__module__ == "torch.random"


def test_nothing_is_seeded_for_what_says_that_it_draws_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sample_seeds, "seed_generators", None)
    batches = batches_of(Still(first=99))
    for indices in ([0, 1], [2, 3]):
        assert batches.__getitems__((1, indices)) == [float(index) for index in indices]


@pytest.mark.parametrize("name", ["python", "numpy", "torch"])
def test_what_says_so_and_draws_in_its_first_batch_is_refused(name: str) -> None:
    with (
        sample_seeds.own_draws(),
        pytest.raises(InputError, match="Still declares draws_nothing, but reading it drew from"),
    ):
        batches_of(Still(DRAWS[name])).__getitems__((1, [0]))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_each_process_holds_its_own_first_batch_to_it(copied: Callable[[Batches], Batches]) -> None:
    batches = batches_of(Still(drawn, first=4))
    batches.__getitems__((1, [0]))
    with sample_seeds.own_draws(), pytest.raises(InputError, match="draws_nothing"):
        copied(batches).__getitems__((1, [4]))


def drawn() -> float:
    """Not a bound method, of which a copy has a generator of its own."""
    return random.random()


@pytest.mark.parametrize("first", [0, 4, 99])
def test_the_training_draws_as_if_nothing_had_been_read(first: int) -> None:
    def train(reads: bool) -> list[float]:
        sample_seeds.seed_generators(3)
        batches = batches_of(Items(lambda: sum(draw() for draw in DRAWS.values()), first))
        found = []
        for indices in ([0, 1], [2, 3], [4, 5], [6, 7]):
            if reads:
                batches.__getitems__((1, indices))
            # An odd number of NumPy's normal numbers: the second one is kept.
            found += [DRAWS[name]() for name in ("gauss", "normals", "torch")]
        return found

    with sample_seeds.own_draws():
        assert train(True) == train(False)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, StopIteration])
def test_what_ends_a_batch_comes_through_and_leaves_the_generators(
    error: type[BaseException],
) -> None:
    def ends() -> float:
        random.random(), torch.rand(()), numpy.random.rand()
        raise error

    with sample_seeds.own_draws():
        sample_seeds.seed_generators(2)
        before = sample_seeds.generator_states()
        with pytest.raises(error):
            batches_of(Items(ends)).__getitems__((1, [0]))
        assert sample_seeds.generator_states() == before


def test_what_makes_the_batch_may_draw_as_well() -> None:
    def noisy(samples: list[float]) -> list[float]:
        return [sample + random.random() for sample in samples]

    batches = batches_of(Items(first=99), noisy)
    first, again = (batches.__getitems__((1, [1, 2])) for _ in range(2))
    assert first == again != [1.0, 2.0]
