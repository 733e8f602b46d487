"""What is saved of modules and their optimizer, and what a load leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training.checkpoint import dcp_folder, sharded


def stepped(width: int = 4) -> tuple[dict[str, nn.Module], torch.optim.Optimizer]:
    modules, optimizer = new(width)
    modules["model"](torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return modules, optimizer


def new(width: int = 4) -> tuple[dict[str, nn.Module], torch.optim.Optimizer]:
    modules = {"model": nn.Linear(3, width), "ema": nn.Linear(3, width)}
    return modules, torch.optim.AdamW(modules["model"].parameters())


def test_what_was_saved_is_put_back(tmp_path: Path) -> None:
    modules, optimizer = stepped()
    dcp_folder.save(tmp_path / "step_1", sharded.shard_tree(modules, optimizer))
    others, other = new()
    sharded.load_shards(tmp_path / "step_1", others, other)
    for name, module in modules.items():
        assert torch.equal(module.weight, others[name].weight)  # type: ignore[arg-type]
    (mine, *_), (theirs, *_) = optimizer.state.values(), other.state.values()
    assert torch.equal(mine["exp_avg"], theirs["exp_avg"]) and theirs["step"] == 1


def test_a_load_that_fails_leaves_a_new_optimizer_new(tmp_path: Path) -> None:
    dcp_folder.save(tmp_path / "step_1", sharded.shard_tree(*stepped(width=5)))
    modules, optimizer = new()
    with pytest.raises(InputError, match=r"model\.weight: shape \(5, 3\)"):
        sharded.load_shards(tmp_path / "step_1", modules, optimizer)
    assert not sharded.has_state(optimizer)
