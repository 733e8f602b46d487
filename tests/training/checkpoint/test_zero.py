"""ZeRO-1 by torch: a rank keeps the moments of some parameters, a checkpoint those of all."""

from __future__ import annotations

from pathlib import Path

import torch
from ranks_at_work import run_ranks
from torch import Tensor, nn
from torch.distributed.optim import ZeroRedundancyOptimizer

from boxcar.training import Checkpointer, DDPWrapper, DistributedConfig, TrainingState
from boxcar.training.ranks import ranks

BATCHES = torch.randn(8, 4, 6, generator=torch.Generator().manual_seed(1))


def train(folder: str, steps: int, is_zero: bool, is_async: bool = False) -> list[float]:
    """Go on in a folder for some steps and save; the weights."""
    me = ranks.join()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    model = DDPWrapper(net, DistributedConfig()).setup()
    if is_zero:
        optimizer: torch.optim.Optimizer = ZeroRedundancyOptimizer(
            model.parameters(), torch.optim.AdamW, lr=0.01
        )
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    state = TrainingState(model=model, optimizer=optimizer, loader=Counted())
    checkpointer = Checkpointer(folder, state)
    checkpointer.load_latest()
    for batch in BATCHES[state.step : state.step + steps]:
        share = batch[me.rank :: me.world]
        model(share).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        state.step += 1
    if is_async:
        checkpointer.save_async()
        checkpointer.wait()
    else:
        checkpointer.save()
    if is_zero and me.world > 1:
        kept = sum(len(of) > 0 for of in optimizer.optim.state.values())  # type: ignore[attr-defined]
        assert 0 < kept < 6
    return flat(net)


class Counted:
    """A loader of four samples in each step of all ranks together."""

    def state_dict(self) -> dict[str, int]:
        return {"global_batch": 4}

    def load_state_dict(self, state: dict[str, int]) -> None: ...


def flat(net: nn.Module) -> list[float]:
    return torch.cat([p.detach().flatten() for p in net.parameters()]).tolist()


def near(one: list[float], other: list[float]) -> bool:
    return torch.allclose(Tensor(one), Tensor(other), atol=1e-6)


def test_a_killed_run_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = run_ranks(2, train, str(tmp_path / "whole"), 8, True)
    run_ranks(2, train, str(tmp_path / "killed"), 3, True)
    assert run_ranks(2, train, str(tmp_path / "killed"), 5, True) == whole
    run_ranks(2, train, str(tmp_path / "behind"), 3, True, True)
    assert run_ranks(2, train, str(tmp_path / "behind"), 5, True) == whole


def test_it_trains_as_plain_adamw_and_either_goes_on_from_the_other(tmp_path: Path) -> None:
    (plain,) = run_ranks(1, train, str(tmp_path / "plain"), 8, False)
    run_ranks(2, train, str(tmp_path / "first_zero"), 3, True)
    (found,) = run_ranks(1, train, str(tmp_path / "first_zero"), 5, False)
    assert near(found, plain)
    run_ranks(1, train, str(tmp_path / "first_plain"), 3, False)
    for found in run_ranks(2, train, str(tmp_path / "first_plain"), 5, True):
        assert near(found, plain)
