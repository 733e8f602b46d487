from __future__ import annotations

import pytest
import torch

from boxcar.training.checkpoint import checkpoint_folder


@pytest.mark.parametrize(
    ("saved", "now", "expected"),
    [
        ({"lr": 0.1}, {"lr": 0.1}, []),
        ({"lr": 0.1}, {"lr": 0.2}, ["lr was 0.1, is 0.2"]),
        ({"lr": 0.1}, {}, ["lr was 0.1, is not given"]),
        ({}, {"lr": 0.1}, ["lr was not given, is 0.1"]),
        ({"a": (1, 2)}, {"a": [1, 2]}, []),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a was {'b': 1}, is {'b': 2}"]),
        ({"aug": 1}, {"aug": True}, ["aug was 1, is True"]),
        ({"a": None}, {"a": None}, []),
        ({"w": torch.ones(2)}, {"w": torch.ones(2)}, []),
        ({"w": torch.ones(1)}, {"w": torch.zeros(1)}, ["w was tensor([1.]), is tensor([0.])"]),
    ],
)
def test_differences_are_named(saved: dict, now: dict, expected: list[str]) -> None:  # type: ignore[type-arg]
    assert checkpoint_folder.differing_settings(saved, now) == expected


def saved_by(world: int, **loader: int) -> dict:  # type: ignore[type-arg]
    return {"identity": {}, "world": world, "loader": loader}


def test_the_same_global_batch_goes_on_with_another_world() -> None:
    assert (
        checkpoint_folder.resume_problems(saved_by(2, global_batch=64), {}, 4, {"global_batch": 64})
        == []
    )


def test_another_global_batch_does_not() -> None:
    [said] = checkpoint_folder.resume_problems(
        saved_by(2, global_batch=64), {}, 4, {"global_batch": 128}
    )
    assert said == (
        "it was saved by 2 ranks, but now there are 4, and the global batch was 64, is 128: "
        "start 2 ranks"
    )


def test_without_a_loader_nobody_knows() -> None:
    assert checkpoint_folder.resume_problems(saved_by(2), {}, 2, {}) == []
    [said] = checkpoint_folder.resume_problems(saved_by(2), {}, 1, {})
    assert "no loader in TrainingState says whether the global batch is the same" in said
