"""From files of solved problems to batches of latents: fetch, encode once, take turns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from boxcar.shared.errors import DamagedError, InputError
from boxcar.training import Fingerprint, LatentCache, RankAwareDataLoader
from boxcar.training.fetch import Files, fetch
from boxcar.training.fetch.staging import read_json

SPLITS = ("train", "val", "test")
ENCODE_BATCH = 64


class Pairs(Dataset[Any]):
    """One file of generate.py, mapped: a number gives (input [C, ...], target [1, ...])."""

    def __init__(self, path: Path) -> None:
        try:
            content = torch.load(path, weights_only=True, mmap=True)
            self.inputs, self.targets = content["inputs"], content["targets"]
            self.made_from = {key: content[key] for key in ("samples", "resolution", "seed")}
        except Exception as error:  # cut or damaged: torch raises half a dozen kinds
            reason = " ".join(str(error).split())[:200]
            raise DamagedError(f"{path}: is no file of generate.py: {reason}") from error

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        return self.inputs[number], self.targets[number]


def fetched(spec: Path, tasks: list[str]) -> Files:
    """Where the files of these tasks lie here; all ranks call it, one of the node fetches."""
    document = read_json(spec)
    known = document.get("tasks", {}) if isinstance(document, dict) else {}
    if unknown := [task for task in tasks if task not in known]:
        raise InputError(f"{spec}: no task {', '.join(unknown)}; it has {', '.join(known)}")
    return fetch(document | {"tasks": {task: known[task] for task in tasks}})


def latents(path: Path, encoder: nn.Module, workers: int) -> Dataset[Any]:
    """A file's samples as (tokens, target), encoded once for all cells of this box."""
    cache = LatentCache(
        Path(os.environ["BOXCAR_DATA_DIR"], "pde-latents", path.stem),
        dataset=Pairs(path),
        encoder=encoder,
        fingerprint=Fingerprint.of(encoder=encoder, transform="none", data=path),
        batch_size=ENCODE_BATCH,
        num_workers=workers,
    )
    return cache.fill().dataset()


class Turns:
    """Endless batches of several tasks in turn: all ranks have the same task in the same step."""

    def __init__(self, loaders: dict[str, RankAwareDataLoader]) -> None:
        self.loaders = loaders
        self.batches = {task: endless(loader) for task, loader in loaders.items()}

    def __len__(self) -> int:
        """Micro-batches until every sample was seen once, where the tasks have equally many."""
        return sum(map(len, self.loaders.values()))

    def take(self, number: int) -> tuple[str, Any]:
        """The task of micro-batch `number`, and its next batch."""
        task = list(self.loaders)[number % len(self.loaders)]
        return task, next(self.batches[task])

    def state_dict(self) -> dict[str, Any]:
        """The position in each task's loader; one global batch for all of them."""
        states = {task: loader.state_dict() for task, loader in self.loaders.items()}
        return states | {"global_batch": next(iter(states.values()))["global_batch"]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with exactly the next batch of each task."""
        for task, loader in self.loaders.items():
            loader.load_state_dict(state[task])


def endless(loader: RankAwareDataLoader) -> Iterator[Any]:
    """One epoch after the other; the first one is the rest of the one under way."""
    while True:
        yield from loader
