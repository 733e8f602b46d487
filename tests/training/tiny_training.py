"""A training small enough for hundreds of saves, and one whose state says which step it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from boxcar.training.checkpoint.checkpointer import Checkpointer
from boxcar.training.checkpoint.training_state import TrainingState


class Tiny:
    """Linear regression with dropout, AdamW and a schedule: each part of its state matters."""

    def __init__(self, seed: int = 0, width: int = 8, **more: Any) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(4, width), nn.Dropout(0.2), nn.Linear(width, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 100)
        self.ema = torch.optim.swa_utils.AveragedModel(self.model)
        self.state = TrainingState(
            model=self.model,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            ema=self.ema,
            **more,
        )

    def train(self, steps: int) -> list[float]:
        """The loss of each step."""
        return [self.step() for _ in range(steps)]

    def step(self) -> float:
        inputs = torch.randn(8, 4)
        loss = (self.model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.ema.update_parameters(self.model)
        self.state.step += 1
        return loss.item()


class Marked:
    """Every tensor of its state holds the step's number, so that a mixture shows."""

    def __init__(self, out: Path, values: int = 1000, **options: Any) -> None:
        self.model = nn.Linear(values, 4)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.model(torch.ones(values)).sum().backward()
        self.optimizer.step()
        self.state = TrainingState(model=self.model, optimizer=self.optimizer)
        self.checkpointer = Checkpointer(out, self.state, **options)

    def mark(self, step: int) -> None:
        self.state.step = step
        with torch.no_grad():
            for tensor in self.tensors():
                tensor.fill_(step)

    def tensors(self) -> list[torch.Tensor]:
        moments = [t for of in self.optimizer.state.values() for t in of.values()]
        return [*self.model.parameters(), *moments]

    def marks(self) -> set[float]:
        """What the tensors hold: one number, unless states were mixed."""
        return {value for tensor in self.tensors() for value in tensor.detach().unique().tolist()}


_BESIDE = ("checkpoints/history.json", "checkpoints/lock")


def names_in(out: Path) -> list[str]:
    """All files below `out`, but for the history."""
    found = [path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()]
    return sorted(name for name in found if name not in _BESIDE)
