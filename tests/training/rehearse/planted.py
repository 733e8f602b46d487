"""A train script with one planted defect: `--without optimizer` leaves that out of its resume.

`--how unsaved` never writes that part, `--how unrestored` writes it and does not load it. It runs
as a script, which a test kills, and as a function, which a test ends at a step.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist

from boxcar.training import data_order

PARTS = ("model", "optimizer", "scheduler", "ema", "rng", "loader", "step")
SAMPLES, BATCH = 40, 4
RANK, WORLD = (
    int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1))
)


class Died(Exception):
    """What stands for a SIGKILL where the script is called as a function."""


class Trained:
    def __init__(self) -> None:
        torch.manual_seed(5)
        self.samples = torch.randn(SAMPLES, 3)
        self.wanted = self.samples @ torch.tensor([[1.0], [-2.0], [0.5]])
        self.model = torch.nn.Linear(3, 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 0.97**step)
        self.ema = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.step, self.epoch, self.batch = 0, 0, 0

    def saved(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "ema": self.ema,
            "rng": torch.get_rng_state(),
            "loader": {"epoch": self.epoch, "batches_done": self.batch},
            "step": self.step,
        }

    def restore(self, part: str, value: Any) -> None:
        if part in ("model", "optimizer", "scheduler"):
            getattr(self, part).load_state_dict(value)
        elif part == "ema":
            self.ema = value
        elif part == "rng":
            torch.set_rng_state(value)
        elif part == "loader":
            self.epoch, self.batch = value["epoch"], value["batches_done"]
        else:
            self.step = value

    def train_step(self) -> float:
        order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(self.epoch))
        chosen = order[self.batch * BATCH : (self.batch + 1) * BATCH][RANK::WORLD]
        data_order.note(self.epoch, self.batch, chosen)
        noise = 0.1 * torch.randn(len(chosen), 3)
        loss = (self.model(self.samples[chosen] + noise) - self.wanted[chosen]).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        if WORLD > 1:
            for parameter in self.model.parameters():
                dist.all_reduce(parameter.grad)
        self.optimizer.step()
        self.scheduler.step()
        for name, value in self.model.state_dict().items():
            self.ema[name] = 0.9 * self.ema[name] + 0.1 * value
        self.step, self.batch = self.step + 1, self.batch + 1
        if self.batch == SAMPLES // BATCH:
            self.epoch, self.batch = self.epoch + 1, 0
        return loss.item()


def save(state: dict[str, Any], path: Path) -> None:
    torch.save(state, path.with_name("new.pth"))
    path.with_name("new.pth").replace(path)


def report(out: Path, step: int, loss: float) -> None:
    """Not the progress module: its thread may lose the last lines, and a test counts them."""
    with (out / "progress.jsonl").open("a") as file:
        print(json.dumps({"step": step, "loss": loss}), file=file)


def train(  # one long function, as people write them
    out: Path,
    *,
    without: str = "",
    how: str = "unrestored",
    steps: int = 24,
    save_every: int = 6,
    pause_s: float = 0.0,
    die_at: int | None = None,
) -> None:
    cell, latest = Trained(), out / "latest.pth"
    if latest.exists():
        saved = torch.load(latest, weights_only=True)
        for part in PARTS:
            if part in saved and part != without:
                cell.restore(part, saved[part])
    if WORLD > 1:
        dist.barrier()  # nobody saves before all have loaded
    while cell.step < steps:
        loss = cell.train_step()
        if RANK == 0:
            report(out, cell.step, loss)
        if RANK == 0 and save_every and cell.step % save_every == 0:
            left = without if how == "unsaved" else ""
            save({k: v for k, v in cell.saved().items() if k != left}, latest)
        if cell.step == die_at:
            raise Died
        time.sleep(pause_s)
    if RANK == 0:
        save({"model": cell.model.state_dict(), "ema": cell.ema}, out / "best.pth")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if WORLD > 1:
        dist.init_process_group("gloo")
    parser = argparse.ArgumentParser()
    parser.add_argument("--without", default="")
    parser.add_argument("--how", default="unrestored")
    parser.add_argument("--pause-s", type=float, default=0.0)
    asked = parser.parse_args()
    train(
        Path(os.environ["BOXCAR_OUT"]), without=asked.without, how=asked.how, pause_s=asked.pause_s
    )
    if WORLD > 1:
        dist.destroy_process_group()
