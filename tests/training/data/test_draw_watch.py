"""Who has drawn from which generator."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from boxcar.training.data import draw_watch
from boxcar.training.data.asked_states import ASKED
from boxcar.training.data.draw_watch import States, Watch
from boxcar.training.data.generators import ALL, NUMPY, PYTHON, TORCH

pytestmark = pytest.mark.usefixtures("seeded")


def draws() -> tuple[float, ...]:
    return random.random(), float(numpy.random.rand()), float(torch.rand(()))


def begin(watch: Watch) -> States:
    states = watch.begin()
    assert states
    return states


@pytest.mark.parametrize(
    ("draw", "drawn_from"),
    [
        (random.random, PYTHON),
        (lambda: random.gauss(0, 1), PYTHON),
        (lambda: random.shuffle([1, 2, 3]), PYTHON),
        (lambda: random.seed(2), PYTHON),
        (numpy.random.rand, NUMPY),
        (numpy.random.randn, NUMPY),
        (lambda: numpy.random.rand(312), NUMPY),  # all its words: the position is the same again
        (lambda: numpy.random.seed(2), NUMPY),
        (lambda: torch.rand(()), TORCH),
        (lambda: torch.randperm(3), TORCH),
        (lambda: torch.manual_seed(2), TORCH),
    ],
)
def test_a_draw_is_told_by_the_generator_it_came_from(
    draw: Callable[[], object], drawn_from: str
) -> None:
    watch = Watch()
    before = begin(watch)
    draw()
    assert watch.now().moved(before) == {drawn_from}


def test_a_second_normal_number_that_python_keeps_is_a_draw_too() -> None:
    watch = Watch()
    random.gauss(0, 1)
    before = begin(watch)
    random.gauss(0, 1)
    assert watch.now().moved(before) == {PYTHON}


def test_what_draws_nothing_moves_nothing() -> None:
    watch = Watch()
    before = begin(watch)
    random.Random(1).random(), numpy.random.default_rng(1).random()
    torch.rand(3, generator=torch.Generator())
    assert watch.now().moved(before) == frozenset()


def test_of_a_normal_number_that_numpy_keeps_nothing_can_be_told() -> None:
    watch = Watch()
    numpy.random.randn()
    assert watch.begin() is None
    numpy.random.randn()
    assert watch.begin()


def test_of_another_kind_of_generator_nothing_can_be_told() -> None:
    before = numpy.random.get_bit_generator()
    watch = Watch()
    try:
        numpy.random.set_bit_generator(numpy.random.PCG64(1))
        assert watch.begin() is None
    finally:
        numpy.random.set_bit_generator(before)
    assert watch.begin()


def test_where_python_keeps_its_words_elsewhere_nothing_can_be_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(random, "random", lambda: 0.5)
    assert Watch().begin() is None


def test_what_is_put_back_draws_the_same_again() -> None:
    watch = Watch()
    random.gauss(0, 1)  # the second one is kept

    def some() -> list[Any]:
        return [*draws(), random.gauss(0, 1), numpy.random.randn(3).tolist()]

    before = begin(watch)
    first = some()
    watch.put_back(before, ALL)
    assert some() == first


def test_only_what_is_named_is_put_back() -> None:
    watch = Watch()
    before = begin(watch)
    draws()
    watch.put_back(before, frozenset((NUMPY,)))
    assert watch.now().moved(before) == {PYTHON, TORCH}


def test_a_second_normal_number_that_is_put_where_none_was_is_seen() -> None:
    ASKED.begin()
    watch = Watch()
    numpy.random.randn()
    kept = numpy.random.get_state()
    numpy.random.randn()  # the same words, and none is kept
    assert watch.begin() and watch.begin()
    numpy.random.set_state(kept)
    assert watch.begin() is None


@pytest.mark.parametrize("which", ["python", "numpy"])
def test_where_the_words_are_not_in_that_place_nothing_can_be_told(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is held against what the generator itself says."""

    class Elsewhere:
        """At another address there are other bytes."""

        def __init__(self) -> None:
            self._held = ctypes.create_string_buffer(5000)

        def from_address(self, address: int) -> Any:
            is_python = address == id(random.random.__self__) + object.__basicsize__  # type: ignore[attr-defined]
            there = ctypes.addressof(self._held)
            return PLACE.from_address(there if is_python == (which == "python") else address)

    PLACE = draw_watch._Place
    assert Watch().begin()
    monkeypatch.setattr(draw_watch, "_Place", Elsewhere())
    assert Watch().begin() is None
