"""A loader, a training loop and a save by Hugging Face's accelerate, where that is installed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import training_loops

NAME = "accelerate"
MISSING = "accelerate is not installed: `make bench` does that"


def is_there() -> bool:
    return importlib.util.find_spec(NAME) is not None


def loader(data: Any, batch: int) -> Any:
    from torch.utils.data import DataLoader

    by_hand = DataLoader(data, batch_size=batch, shuffle=True, drop_last=True)
    return _accelerator().prepare_data_loader(by_hand)


def loop(width: int, batch: int, clip_norm: float, *, layers: int) -> Iterator[None]:
    """As `training_loops.loop`, which is by hand: stops after each step."""
    import torch

    accelerator = _accelerator()
    model = training_loops.new_model(width, layers)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    batches = loader(training_loops.data(), batch)
    while True:
        for inputs, targets in batches:
            with accelerator.accumulate(model):
                loss = training_loops.loss_of(model(inputs), targets)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), clip_norm)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            yield


def saver(model: Any, optimizer: Any) -> Callable[[Path], None]:
    """Saves both into a folder, and waits for the disk, which accelerate does not."""
    accelerator = _accelerator()
    accelerator.prepare(model, optimizer)

    def save(folder: Path) -> None:
        accelerator.save_state(str(folder))
        for path in folder.rglob("*"):
            with path.open("rb") as file:
                os.fsync(file.fileno())

    return save


def _accelerator() -> Any:
    from accelerate import Accelerator

    return Accelerator(cpu=True)
