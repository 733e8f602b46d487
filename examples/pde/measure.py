"""How far off the fields are on a whole split, in this process alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from models import relative_error
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

BATCH = 64
Predict = Callable[[str, Tensor], Tensor]


@torch.no_grad()
def errors(predict: Predict, splits: dict[str, Dataset[Any]]) -> dict[str, float]:
    """Each task's mean relative error; `predict` makes fields of a task's tokens [N, T, 128]."""
    found = {}
    for task, latents in splits.items():
        batches = DataLoader(latents, BATCH)
        parts = [relative_error(predict(task, tokens).cpu(), fields) for tokens, fields in batches]
        found[task] = torch.cat(parts).mean().item()
    return found
