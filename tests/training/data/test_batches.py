"""A batch of what may draw: the same, whatever its process has seen before."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import random
import weakref
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from boxcar.training.data import generators
from boxcar.training.data.batches import Batches
from boxcar.training.data.draw_watch import Watch
from boxcar.training.data.sample_seeds import SeededSamples
from boxcar.training.data.worker_transport import Room, WorkerTransport


def drawn_in_a_fork() -> float:
    with torch.random.fork_rng():
        return torch.rand(()).item()


def taken_back() -> float:
    before = random.getstate()
    try:
        return random.random()
    finally:
        random.setstate(before)


DRAWS: dict[str, Callable[[], float]] = {
    "python": random.random,
    "gauss": lambda: random.gauss(0, 1),
    "numpy": lambda: float(numpy.random.rand()),
    "normals": lambda: float(numpy.random.randn()),
    "torch": lambda: torch.rand(()).item(),
    "a generator from torch's seed": lambda: random.Random(torch.initial_seed()).random(),
    "what is taken back": drawn_in_a_fork,
    "what is taken back by hand": taken_back,
}


class Items:
    """Those at and after `first` draw."""

    def __init__(self, draw: Callable[[], float], first: int = 0) -> None:
        self.draw, self.first, self.reads = draw, first, 0

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> float:
        self.reads += 1
        return index + (self.draw() if index >= self.first else 0.0)


def drawn() -> float:
    """Not a bound method, of which a copy has a generator of its own."""
    return random.random()


class Rare(Items):
    """Draws for a late item alone."""

    def __init__(self) -> None:
        super().__init__(drawn, first=12)


def batches_of(dataset: Any, collate: Callable[[list[Any]], Any] = list) -> Batches:
    return Batches(SeededSamples(dataset, 7), WorkerTransport(collate, Room(None, 0, 2, 1)))


def seeded(dataset: Any, indices: list[int]) -> list[Any]:
    """One sample after another, each by itself."""
    with generators.own_draws():
        return [SeededSamples(dataset, 7).read((1, [index]))[0] for index in indices]


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_samples_are_those_of_their_own_seeds_in_each_batch(draw: Callable[[], float]) -> None:
    batches = batches_of(Items(draw))
    for indices in ([1, 2, 3], [4, 5], [2], [1, 2]):
        assert batches.__getitems__((1, indices)) == seeded(Items(draw), indices)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("first", [3, 5, 6])
def test_they_are_the_same_where_the_first_batches_drew_nothing(name: str, first: int) -> None:
    batches = batches_of(Items(DRAWS[name], first))
    for indices in ([0, 1], [1, 2], [3, 4], [5, 6], [0, 9]):
        assert batches.__getitems__((1, indices)) == seeded(Items(DRAWS[name], first), indices)


def test_they_are_the_same_where_another_generator_is_met_later() -> None:
    def draw() -> float:
        return random.random() + (torch.rand(()).item() if random.random() < 0.2 else 0)

    batches = batches_of(Items(draw))
    for batch in range(20):
        indices = list(range(batch * 4, batch * 4 + 4))
        assert batches.__getitems__((1, indices)) == seeded(Items(draw), indices)


def test_what_was_drawn_unseeded_is_read_once_more_and_only_once() -> None:
    items = Items(random.random, first=2)
    batches = batches_of(items)
    for indices in ([0, 1], [2, 3], [4, 5]):
        batches.__getitems__((1, indices))
    assert items.reads == 2 + 2 * 2 + 2


def test_nothing_is_seeded_for_what_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = batches_of(Items(random.random, first=99))
    batches.__getitems__((1, [0, 1]))
    monkeypatch.setattr(generators, "seed", None)
    assert batches.__getitems__((1, [2, 3])) == [2.0, 3.0]


def test_only_that_is_seeded_from_which_something_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batches = batches_of(Items(DRAWS["torch"]))
    batches.__getitems__((1, [0, 1]))
    expected = seeded(Items(DRAWS["torch"]), [2])
    monkeypatch.setattr(random, "seed", None)
    monkeypatch.setattr(numpy.random, "seed", None)
    assert batches.__getitems__((1, [2])) == expected


@pytest.mark.parametrize("first", [0, 4])
def test_the_training_draws_as_if_nothing_had_been_read(first: int) -> None:
    def train(reads: bool) -> list[float]:
        generators.seed(3)
        batches = batches_of(Items(lambda: sum(draw() for draw in DRAWS.values()), first))
        found = []
        for indices in ([0, 1], [2, 3], [4, 5], [6, 7]):
            if reads:
                batches.__getitems__((1, indices))
            # An odd number of NumPy's normal numbers: the second one is kept.
            found += [DRAWS[name]() for name in ("gauss", "normals", "torch")]
        return found

    with generators.own_draws():
        assert train(True) == train(False)


def test_an_error_that_only_an_unseeded_draw_makes_is_none() -> None:
    def fails_unseeded() -> float:
        if (drawn := random.random()) == fails_at:
            raise ValueError("drawn without a seed")
        return drawn

    batches = batches_of(Items(fails_unseeded, first=2))
    fails_at = -1.0
    batches.__getitems__((1, [0, 1]))
    expected = seeded(Items(fails_unseeded), [2])
    with generators.own_draws():
        random.seed(0)
        fails_at = random.Random(0).random()
        assert batches.__getitems__((1, [2])) == expected


@pytest.mark.parametrize("batch", [0, 1])
def test_an_error_of_a_dataset_comes_through_and_leaves_the_generators(batch: int) -> None:
    def fails() -> float:
        raise ValueError(f"no sample {random.random()}")

    batches, watch = batches_of(Items(fails, first=batch)), Watch()
    for indices in ([0], [1])[:batch]:
        batches.__getitems__((1, indices))
    with generators.own_draws():
        generators.seed(2)
        before = watch.begin()
        with pytest.raises(ValueError, match="no sample"):
            batches.__getitems__((1, [batch]))
        assert watch.begin() == before


def test_what_makes_the_batch_may_draw_as_well() -> None:
    def noisy(samples: list[float]) -> list[float]:
        return [sample + random.random() for sample in samples]

    batches = batches_of(Items(random.random, first=99), noisy)
    first, again = (batches.__getitems__((1, [1, 2])) for _ in range(2))
    assert first == again != [1.0, 2.0]


class Falsy(Exception):
    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Falsy, StopIteration])
def test_what_ends_a_batch_comes_through_and_leaves_the_generators(
    batch: int, error: type[BaseException]
) -> None:
    def ends() -> float:
        if is_late:
            random.random(), torch.rand(()), numpy.random.rand()
            raise error
        return random.random()

    is_late = batch == 0
    batches, watch = batches_of(Items(ends)), Watch()
    for indices in ([0], [1])[:batch]:
        batches.__getitems__((1, indices))
    is_late = True
    with generators.own_draws():
        generators.seed(2)
        before = watch.begin()
        with pytest.raises(error):
            batches.__getitems__((1, [batch]))
        assert watch.begin() == before


def test_an_error_keeps_nothing_alive_that_the_batch_held() -> None:
    class Large:
        pass

    def fails() -> float:
        held = Large()
        seen.append(weakref.ref(held))
        raise ValueError

    seen: list[Any] = []
    batches = batches_of(Items(fails, first=1))
    batches.__getitems__((1, [0]))
    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            batches.__getitems__((1, [1]))
        assert seen[-1]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_sees_for_itself(copied: Callable[[Batches], Batches]) -> None:
    first = batches_of(Rare())
    first.__getitems__((1, [0, 1]))
    other = copied(first)
    with generators.own_draws():
        generators.seed(2)
        before = Watch().begin()
        for indices in ([2, 3], [12, 13]):
            assert other.__getitems__((1, indices)) == seeded(Rare(), indices)
        assert Watch().begin() == before


def test_a_set_that_reads_batches_and_draws_nothing_is_not_seeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Whole(Items):
        def __getitems__(self, indices: list[int]) -> list[float]:
            return [float(index) for index in indices]

    batches = batches_of(Whole(random.random))
    batches.__getitems__((1, [4, 0, 1]))
    monkeypatch.setattr(generators, "seed", None)
    assert batches.__getitems__((1, [2, 3])) == [2.0, 3.0]
