from __future__ import annotations

import io
import random
import sys

import numpy as np
import pytest
import torch

from boxcar.training.checkpoint import training_state


def drawn() -> list[float]:
    """What comes next; gauss, because a half-used pair of numbers is part of the state."""
    normal = [random.gauss(0, 1), float(np.random.normal()), float(torch.randn(()))]
    return [*normal, random.random(), float(np.random.rand()), float(torch.rand(()))]


def stored(rng: dict) -> dict:  # type: ignore[type-arg]
    file = io.BytesIO()
    torch.save(rng, file)
    file.seek(0)
    return torch.load(file, weights_only=True)  # type: ignore[no-any-return]


@pytest.mark.parametrize("before", [0, 1, 700])
def test_all_generators_go_on_with_the_same_numbers(before: int) -> None:
    for _ in range(before):
        drawn()
    random.gauss(0, 1)
    saved = stored(training_state.capture_rng())
    expected = [drawn() for _ in range(3)]
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    assert training_state.restore_rng(saved) == []
    assert [drawn() for _ in range(3)] == expected


def test_a_box_without_numpy_restores_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = training_state.capture_rng()
    expected = random.random()
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert "numpy" not in training_state.capture_rng()
    assert training_state.restore_rng(saved) == []
    assert random.random() == expected


def test_each_rank_has_its_own() -> None:
    saved = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        saved.append(training_state.capture_rng())
    assert training_state.rng_for_rank(saved, 1) is saved[1]
    assert training_state.rng_for_rank(saved, 2) is None


def test_ranks_that_drew_the_same_numbers_go_on_so() -> None:
    saved = [training_state.capture_rng()] * 2
    assert training_state.rng_for_rank(saved, 3) is saved[0]


def test_new_ranks_draw_different_numbers_and_the_same_on_every_try() -> None:
    saved = training_state.capture_rng()
    found = []
    for rank in (2, 3, 2):
        training_state.draw_rng_anew(saved, step=7, rank=rank)
        found.append(drawn())
    assert found[0] == found[2] != found[1]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_gpu_goes_on_with_the_same_numbers() -> None:
    torch.rand(3, device="cuda")
    saved = stored(training_state.capture_rng())
    expected = torch.rand(5, device="cuda")
    torch.cuda.manual_seed(1)
    training_state.restore_rng(saved)
    assert torch.equal(torch.rand(5, device="cuda"), expected)
