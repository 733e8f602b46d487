from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from boxcar.shared.errors import InputError
from boxcar.training.parallel.ddp import recompute_blocks


class Block(nn.Module):
    """Counts its forwards: a recomputed one has two for each backward."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.drop = nn.Dropout(0.5)
        self.forwards = 0

    def forward(self, x: Tensor) -> Tensor:
        self.forwards += 1
        return x + self.drop(torch.relu(self.linear(x)))


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), Block(), Block())


def gradients(model: nn.Module) -> list[Tensor]:
    torch.manual_seed(1)
    model(torch.ones(4, 8)).square().sum().backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


def test_recomputed_blocks_give_the_same_gradients_with_two_forwards() -> None:
    plain, frugal = net(), net()
    assert recompute_blocks(frugal, ["Block"]) == 2
    for a, b in zip(gradients(plain), gradients(frugal), strict=True):
        assert torch.equal(a, b)
    assert (plain[1].forwards, frugal[1].forwards) == (1, 2)


def test_names_and_copies_stay_as_they_are() -> None:
    model = net()
    names = list(model.state_dict())
    recompute_blocks(model, ["Block"])
    recompute_blocks(model, ["Block"])
    assert list(model.state_dict()) == names
    twin = copy.deepcopy(model)
    gradients(twin)
    assert (model[1].forwards, twin[1].forwards) == (0, 2)


def test_an_unknown_block_is_told_with_the_nearest() -> None:
    with pytest.raises(InputError, match="class or name 'Blok'; did you mean 'Block'"):
        recompute_blocks(net(), ["Blok"])
    with pytest.raises(InputError, match="it has Linear, Block, Dropout"):
        recompute_blocks(net(), ["Xyz"])
