"""One cell on its way through the epochs: its data, its steps, its measuring, its saving.

A resumed cell ends bit-equal to one that was never interrupted (on a CPU), and two ranks do what
one does: scenes, the order of samples and each sample's noise depend on seed, epoch and sample
alone, and the rest is in the saved state.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from pathlib import Path
from typing import Any

import torch
from config import Config
from data import Scenes, load_digits, split
from task import TASKS
from torch import Generator, Tensor

from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.training import (
    Checkpointer,
    DDPWrapper,
    DistributedConfig,
    GradientAccumulator,
    Preemption,
    RankAwareDataLoader,
    TrainingState,
    progress,
    ranks,
)

BETAS = (0.9, 0.95)
WARMUP_STEPS = 20
REPORT_EVERY_STEPS = 10
VAL_SEED = 360


class Noisy:
    """The scenes of an epoch, each with fresh noise on its input; the loader seeds every sample."""

    scenes: Scenes

    def __init__(self, samples: int, noise: float) -> None:
        self.samples, self.noise = samples, noise

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        inputs, target = self.scenes.inputs[index], self.scenes.targets[index]
        return inputs + self.noise * torch.randn(inputs.shape) if self.noise else inputs, target


class Cell:
    """Model, optimizer, place and best result of one cell."""

    def __init__(self, args: argparse.Namespace, cfg: Config) -> None:
        self.args, self.cfg, self.task = args, cfg, TASKS[args.task]
        torch.manual_seed(cfg.seed)
        config = DistributedConfig()
        self.ranks = ranks.join(config)
        self.wrapper = DDPWrapper(self.task.model(cfg), config)
        self.model = self.wrapper.setup()
        self.stop = Preemption()
        self.digits, val_digits = split(load_digits(), cfg.samples)
        self.val = self.task.scenes(val_digits, Generator().manual_seed(VAL_SEED))
        self.data = Noisy(samples_per_epoch(cfg, args.limit_batches), cfg.noise)
        share = batch_of_a_rank(cfg, self.ranks.world)
        self.loader = RankAwareDataLoader(
            self.data, config, batch_size=share, seed=cfg.seed, uneven="drop"
        )
        self.total_steps = args.epochs * len(self.loader)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), cfg.lr, BETAS, weight_decay=cfg.weight_decay, fused=True
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.share_of_lr)
        self.accumulator = GradientAccumulator(1)
        self.since = time.monotonic()
        self.numbers: dict[str, float] = {"loss_sum": 0.0, "train_loss": 0.0, "seconds": 0.0}
        self.state = TrainingState(
            model=self.model,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            loader=self.loader,
            numbers=self.numbers,
        )
        identity = {"task": args.task, "epochs": args.epochs, "limit_batches": args.limit_batches}
        self.checkpointer = Checkpointer(
            args.out, self.state, identity=identity | dataclasses.asdict(cfg)
        )

    def share_of_lr(self, step: int) -> float:
        """The learning rate at a step over cfg.lr: a short rise, then a cosine down to 0."""
        rise = min(1.0, (step + 1) / WARMUP_STEPS)
        return rise * (1 + math.cos(math.pi * step / self.total_steps)) / 2

    def resume(self) -> None:
        """Go on from latest.pth where there is one."""
        if self.checkpointer.load_latest():
            place = f"epoch {self.state.epoch}/{self.args.epochs}, step {self.state.step}"
            self.say(f"resumed after {place}")

    def train(self) -> None:
        """Take all steps that are still to be taken."""
        while self.state.epoch < self.args.epochs:
            self.data.scenes = self.epoch_scenes()
            for inputs, targets in self.loader:
                self.count_step(self.train_step(inputs, targets))
                if self.stop.should_stop():
                    self.save_and_stop()
            self.finish_epoch()

    def epoch_scenes(self) -> Scenes:
        """The scenes of this epoch, in the order of the digits."""
        epoch = self.state.epoch if self.cfg.aug else 0
        seed = self.cfg.seed * 1_000_000 + epoch
        return self.task.scenes(self.digits, Generator().manual_seed(seed))

    def train_step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """One optimizer step on this rank's share of the batch; its loss."""
        device = self.ranks.device
        with self.accumulator.micro_step(self.model, self.state.step):
            loss = self.task.loss(self.model(inputs.to(device)), targets.to(device))
            self.accumulator.step(loss, self.optimizer, self.state.step)
        self.scheduler.step()
        return loss

    def count_step(self, loss: Tensor) -> None:
        """Move on by one step, and report every few."""
        mean = self.wrapper.all_reduce_metrics({"loss": loss.item()})["loss"]
        self.state.step += 1
        self.numbers["loss_sum"] += mean
        if self.state.step % REPORT_EVERY_STEPS == 0:
            self.report(loss=mean)

    def finish_epoch(self) -> None:
        """Measure, keep the best, save."""
        numbers, state = self.numbers, self.state
        numbers["train_loss"], numbers["loss_sum"] = numbers["loss_sum"] / len(self.loader), 0.0
        state.epoch += 1
        metric = self.measure() if self.ranks.is_main else math.nan
        self.checkpointer.save_best(metric)
        self.save()
        self.report(loss=numbers["train_loss"], **{self.task.metric_name: metric})
        self.say_epoch(metric)

    @torch.no_grad()
    def measure(self) -> float:
        """The metric on the whole validation set; rank 0's alone counts."""
        outputs = self.wrapper.unwrapped(self.val.inputs.to(self.ranks.device)).cpu()
        return self.task.metric(outputs, self.val.targets)

    def save(self) -> None:
        """Write the full state."""
        now = time.monotonic()
        self.numbers["seconds"], self.since = self.numbers["seconds"] + now - self.since, now
        self.checkpointer.save()

    def save_and_stop(self) -> None:
        """Save in the middle of an epoch, and leave, all ranks together."""
        self.save()
        self.say(f"stopped at step {self.state.step}, saved: the same command goes on from here")
        self.stop.exit()

    def write_metrics(self) -> None:
        """metrics.json from what the state holds, however often it is asked."""
        best = self.state.best
        assert best is not None
        values: dict[str, Any] = {
            "task": self.args.task,
            self.task.metric_name: best["metric"],
            "best_epoch": best["epoch"],
            "epochs": self.state.epoch,
            "train_loss": self.numbers["train_loss"],
            "params": sum(p.numel() for p in self.model.parameters()),
            "seconds": round(self.numbers["seconds"], 2),
            "world_size": self.ranks.world,
        }
        if self.ranks.is_main:
            text = json.dumps(values, indent=2, allow_nan=False) + "\n"
            atomic.write_whole(Path(self.args.out, "metrics.json"), text.encode())

    def report(self, **values: float) -> None:
        """One line of progress.jsonl."""
        place = {"total_steps": self.total_steps, "epoch": self.state.epoch}
        progress.report(step=self.state.step, **place, **values)

    def say_epoch(self, metric: float) -> None:
        """One line of the log for a finished epoch."""
        numbers, name, best = self.numbers, self.task.metric_name, self.state.best
        self.say(
            f"epoch {self.state.epoch}/{self.args.epochs}  loss {numbers['train_loss']:.4f}  "
            f"{name} {metric:.4f}  best {best['metric'] if best else metric:.4f}  "
            f"{numbers['seconds']:.1f} s"
        )

    def say(self, line: str) -> None:
        """One line of the log, from one rank."""
        if self.ranks.is_main:
            print(line, flush=True)


def samples_per_epoch(cfg: Config, limit: int | None) -> int:
    """All samples, or those of the first few batches."""
    if cfg.batch > cfg.samples:
        raise InputError(
            f"batch {cfg.batch} is more than the {cfg.samples} training samples there are"
        )
    return min(cfg.samples, limit * cfg.batch) if limit else cfg.samples


def batch_of_a_rank(cfg: Config, world: int) -> int:
    """This rank's part of the batch."""
    if cfg.batch % world:
        raise InputError(f"batch {cfg.batch} cannot be shared equally by {world} ranks")
    return cfg.batch // world
