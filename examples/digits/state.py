"""What a cell's three files hold, and how a cell goes on from the first of them.

latest.pth is all that the next start needs; best.pth and metrics.json are the artifacts. latest.pth
holds the best weights as well, so that a finished cell can always write its artifacts again. Rank 0
writes, every rank reads.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from config import ConfigError

if TYPE_CHECKING:
    from cell import Cell


@dataclasses.dataclass
class Place:
    """How far a cell has come, in plain numbers."""

    epoch: int = 0
    """Finished epochs."""
    batch: int = 0
    """Finished steps of the epoch in progress."""
    step: int = 0
    """Finished steps of all epochs."""
    loss_sum: float = 0.0
    """Over the finished steps of the epoch in progress."""
    train_loss: float = 0.0
    """Mean over the steps of the last finished epoch."""
    seconds: float = 0.0
    """Spent training, in all starts together."""


def identity(cell: Cell) -> dict[str, Any]:
    """What must be the same to go on from a saved state; epochs too, they shape the schedule."""
    args = cell.args
    run = {"task": args.task, "epochs": args.epochs, "limit_batches": args.limit_batches}
    return run | dataclasses.asdict(cell.cfg)


def latest(cell: Cell) -> dict[str, Any]:
    """All that the next start needs, in plain containers, numbers and tensors."""
    on_gpu = cell.ranks.device.type == "cuda"
    return {
        "identity": identity(cell),
        "place": dataclasses.asdict(cell.place),
        "model": cell.model.state_dict(),
        "optimizer": cell.optimizer.state_dict(),
        "scheduler": cell.scheduler.state_dict(),
        "rng": torch.get_rng_state(),
        "rng_cuda": torch.cuda.get_rng_state() if on_gpu else None,
        "best": cell.best,
        "world_size": cell.ranks.world,
    }


def restore(cell: Cell, state: dict[str, Any]) -> None:
    """Put a fresh cell where the saved one was; ConfigError where it was another experiment."""
    refuse_another(cell, state["identity"])
    cell.place, cell.best = Place(**state["place"]), state["best"]
    cell.model.load_state_dict(state["model"])
    cell.optimizer.load_state_dict(state["optimizer"])
    cell.scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["rng"])
    if cell.ranks.device.type == "cuda" and state["rng_cuda"] is not None:
        torch.cuda.set_rng_state(state["rng_cuda"])


def refuse_another(cell: Cell, saved: dict[str, Any]) -> None:
    """Raise where the saved state was trained with other settings, and name them."""
    now = identity(cell)
    changed = [
        f"{k} was {saved.get(k)}, is {now.get(k)}"
        for k in now | saved
        if saved.get(k) != now.get(k)
    ]
    if changed:
        raise ConfigError(
            f"{cell.args.out}/latest.pth was saved with other settings ({'; '.join(changed)}): "
            "give another --out, or delete that folder to start over"
        )


def best(cell: Cell, metric: float) -> dict[str, Any]:
    """What best.pth holds; the weights are copied, because training goes on in place."""
    weights = {k: v.detach().cpu().clone() for k, v in cell.model.state_dict().items()}
    return {
        "model": weights,
        "epoch": cell.place.epoch,
        "task": cell.args.task,
        "config": dataclasses.asdict(cell.cfg),
        "metric": metric,
        "metric_name": cell.task.metric_name,
    }


def numbers(cell: Cell) -> dict[str, Any]:
    """What metrics.json holds; the metric is the best epoch's."""
    assert cell.best is not None
    return {
        "task": cell.args.task,
        cell.task.metric_name: cell.best["metric"],
        "best_epoch": cell.best["epoch"],
        "epochs": cell.place.epoch,
        "train_loss": cell.place.train_loss,
        "params": sum(p.numel() for p in cell.model.parameters()),
        "seconds": round(cell.place.seconds, 2),
        "world_size": cell.ranks.world,
    }
