"""The generators of python, NumPy and torch: seeded, and put back."""

from __future__ import annotations

import random
from typing import Any

import numpy
import pytest
import torch

from boxcar.training.data import sample_seeds

pytestmark = pytest.mark.usefixtures("seeded")


def test_each_of_the_three_is_seeded_and_seen() -> None:
    for draw in (random.random, numpy.random.rand, lambda: torch.rand(())):
        sample_seeds.seed_generators(2)
        before = sample_seeds.generator_states()
        draw()
        assert (
            sum(state != before[name] for name, state in sample_seeds.generator_states().items())
            == 1
        )
        sample_seeds.seed_generators(2)
        assert sample_seeds.generator_states() == before


def test_the_main_process_draws_on_as_if_nothing_had_been_read() -> None:
    def train(reads: bool) -> list[Any]:
        random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
        numpy.random.randn()  # NumPy keeps a second normal number: part of its state
        if reads:
            with sample_seeds.own_draws():
                sample_seeds.seed_generators(3)
                random.random(), numpy.random.rand(), torch.rand(())
        drawn = random.random(), numpy.random.rand(), torch.rand(()).item()
        return [*drawn, numpy.random.randn(), torch.randn(2).tolist()]

    assert train(reads=True) == train(reads=False)


def test_the_generators_get_their_state_back_after_an_error_too() -> None:
    torch.manual_seed(1)
    expected = torch.rand(())
    torch.manual_seed(1)
    with pytest.raises(ZeroDivisionError), sample_seeds.own_draws():
        torch.rand(5)
        raise ZeroDivisionError
    assert torch.rand(()) == expected
