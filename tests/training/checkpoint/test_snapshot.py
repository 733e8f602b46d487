from __future__ import annotations

import pytest
import torch
from torch import nn

from boxcar.training.checkpoint.behind import copy_to_cpu

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
        ],
    ),
]


@pytest.mark.parametrize("device", DEVICES)
def test_training_does_not_change_the_copy(device: str) -> None:
    weights = torch.ones(1000, 1000, device=device)
    state = {"a": [weights, 1, "x"], "b": (weights[:5, ::2], None)}
    copied, wait = copy_to_cpu(state)
    weights.add_(1)
    state["a"].append("later")
    wait()
    assert copied["a"][1:] == [1, "x"]
    assert (copied["a"][0].device.type, copied["a"][0].unique().tolist()) == ("cpu", [1.0])
    assert torch.equal(copied["b"][0], torch.ones(5, 500))


def test_shared_weights_stay_one_tensor_and_keep_their_formats() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3))
    model[2].weight = model[0].weight
    copied, _ = copy_to_cpu(model.state_dict())
    assert copied["0.weight"] is copied["2.weight"]
    assert copied._metadata["1"] == {"version": 2}
