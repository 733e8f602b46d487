"""One cell on its way through the epochs: its data, its steps, its measuring, its saving.

A resumed cell ends bit-equal to one that was never interrupted (one rank, CPU): scenes and the
order of samples depend on seed and epoch alone, the noise on the saved RNG state, and the state
says how far into the epoch it was saved.
"""

from __future__ import annotations

import argparse
import gc
import math
import time
from collections.abc import Callable
from typing import Any

import checkpoint
import state
import torch
from config import Config, ConfigError
from data import Scenes, load_digits, split
from ranks import Ranks
from task import TASKS
from torch import Generator, Tensor

try:
    from boxcar.training import progress
except ImportError:  # A machine without Boxcar trains just the same, without progress lines.
    progress = None

BETAS = (0.9, 0.95)
WARMUP_STEPS = 20
REPORT_EVERY_STEPS = 10
VAL_SEED = 360


class Diverged(Exception):
    """The loss is infinite or no number; the same command would end here again."""


class Stopped(Exception):
    """Somebody asked to stop, and the state is saved."""


class Cell:
    """Model, optimizer, place and best result of one cell."""

    def __init__(self, args: argparse.Namespace, cfg: Config, ranks: Ranks) -> None:
        self.args, self.cfg, self.ranks, self.task = args, cfg, ranks, TASKS[args.task]
        self.digits, val_digits = split(load_digits(), cfg.samples)
        self.val = self.task.scenes(val_digits, Generator().manual_seed(VAL_SEED))
        self.steps_per_epoch = steps_per_epoch(
            cfg, len(self.digits.labels), ranks.world, args.limit_batches
        )
        self.total_steps = args.epochs * self.steps_per_epoch
        torch.manual_seed(cfg.seed)
        self.model = self.task.model(cfg).to(ranks.device)
        self.parallel = ranks.wrap(self.model)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), cfg.lr, BETAS, weight_decay=cfg.weight_decay, fused=True
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.share_of_lr)
        self.place, self.since = state.Place(), time.monotonic()
        self.best: dict[str, Any] | None = None

    def share_of_lr(self, step: int) -> float:
        """The learning rate at a step over cfg.lr: a short rise, then a cosine down to 0."""
        rise = min(1.0, (step + 1) / WARMUP_STEPS)
        return rise * (1 + math.cos(math.pi * step / self.total_steps)) / 2

    def resume(self) -> None:
        """Go on from latest.pth where there is one."""
        saved = checkpoint.load(self.args.out / "latest.pth")
        # No rank may write before all have read, or one would start from a later state.
        self.ranks.wait()
        if saved is not None:
            state.restore(self, saved)
            self.say(
                f"resumed after epoch {self.place.epoch}/{self.args.epochs}, step {self.place.step}"
            )

    def train(self, stop_asked: Callable[[], bool]) -> None:
        """Take all steps that are still to be taken; raises Stopped or Diverged."""
        while self.place.epoch < self.args.epochs:
            scenes, batches = self.epoch_data()
            for chosen in batches[self.place.batch :]:
                stop, loss = self.ranks.share(stop_asked(), self.train_step(scenes, chosen))
                self.count_step(loss)
                if stop:
                    self.save_and_stop()
            self.finish_epoch()

    def epoch_data(self) -> tuple[Scenes, list[Tensor]]:
        """The scenes of this epoch, and which of them each step takes; no sample comes twice."""
        epoch = self.place.epoch
        scenes = self.task.scenes(
            self.digits, self.generator(epoch if self.cfg.aug else 0, stream=0)
        )
        order = torch.randperm(len(scenes.inputs), generator=self.generator(epoch, stream=1))
        return scenes, list(order.split(self.cfg.batch)[: self.steps_per_epoch])

    def generator(self, epoch: int, stream: int) -> Generator:
        """Depends on seed, epoch and stream alone: a resumed epoch draws what it drew before."""
        return Generator().manual_seed(self.cfg.seed * 1_000_000 + epoch * 2 + stream)

    def train_step(self, scenes: Scenes, chosen: Tensor) -> Tensor:
        """One optimizer step on this rank's share of the chosen samples [batch]; its loss."""
        inputs, targets = scenes.inputs[chosen], scenes.targets[chosen]
        if self.cfg.noise:
            # Every rank draws the whole batch's noise: so one saved RNG state is right for all.
            inputs = inputs + self.cfg.noise * torch.randn(inputs.shape)
        mine = slice(self.ranks.rank, None, self.ranks.world)
        outputs = self.parallel(inputs[mine].to(self.ranks.device))
        loss = self.task.loss(outputs, targets[mine].to(self.ranks.device))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss

    def count_step(self, loss: float) -> None:
        """Move on by one step, and report every few."""
        place = self.place
        place.batch += 1
        place.step += 1
        place.loss_sum += loss
        if not math.isfinite(loss):
            raise Diverged(f"loss is {loss} at step {place.step}: try an lr below {self.cfg.lr}")
        if place.step % REPORT_EVERY_STEPS == 0:
            self.report(loss=loss)

    def finish_epoch(self) -> None:
        """Measure, keep the best, save; the other ranks go on and wait in their next step."""
        place = self.place
        place.train_loss, place.loss_sum = place.loss_sum / self.steps_per_epoch, 0.0
        place.epoch, place.batch = place.epoch + 1, 0
        if self.ranks.rank == 0:
            metric = self.measure()
            if self.best is None or metric > self.best["metric"]:
                self.best = state.best(self, metric)
                checkpoint.save(self.args.out / "best.pth", self.best)
            self.save_latest()
            self.report(loss=place.train_loss, **{self.task.metric_name: metric})
            self.say_epoch(metric)

    @torch.no_grad()
    def measure(self) -> float:
        """The metric on the whole validation set."""
        outputs = self.model(self.val.inputs.to(self.ranks.device)).cpu()
        return self.task.metric(outputs, self.val.targets)

    def save_latest(self) -> None:
        """Write the full state, from rank 0."""
        now = time.monotonic()
        self.place.seconds, self.since = self.place.seconds + now - self.since, now
        if self.ranks.rank == 0:
            checkpoint.save(self.args.out / "latest.pth", state.latest(self))

    def save_and_stop(self) -> None:
        """Save in the middle of an epoch, and leave, all ranks together."""
        self.save_latest()
        # torchrun ends the others as soon as one has left: nobody leaves before rank 0 has saved.
        self.ranks.wait()
        self.leave()
        self.say(f"stopped at step {self.place.step}, saved: the same command goes on from here")
        raise Stopped

    def leave(self) -> None:
        """Say goodbye to the other ranks."""
        # DDP, in circles, holds the group: its threads must end before the interpreter does, or
        # the process may abort after all its work is done.
        self.parallel = self.model
        gc.collect()
        self.ranks.leave()

    def write_artifacts(self) -> None:
        """best.pth and metrics.json from what the state holds, however often it is asked."""
        if self.ranks.rank == 0:
            checkpoint.save(self.args.out / "best.pth", self.best)
            checkpoint.write_json(self.args.out / "metrics.json", state.numbers(self))

    def report(self, **values: float) -> None:
        """One line of progress.jsonl."""
        if progress is not None:
            progress.report(
                step=self.place.step,
                total_steps=self.total_steps,
                epoch=self.place.epoch,
                **values,
            )

    def say_epoch(self, metric: float) -> None:
        """One line of the log for a finished epoch."""
        place, name = self.place, self.task.metric_name
        self.say(
            f"epoch {place.epoch}/{self.args.epochs}  loss {place.train_loss:.4f}  "
            f"{name} {metric:.4f}  best {self.best['metric']:.4f}  {place.seconds:.1f} s"
        )

    def say(self, line: str) -> None:
        """One line of the log, from one rank."""
        if self.ranks.rank == 0:
            print(line, flush=True)


def steps_per_epoch(cfg: Config, samples: int, world: int, limit: int | None) -> int:
    """Full batches in an epoch; what is left over may come up in another epoch's order."""
    if cfg.batch % world:
        raise ConfigError(f"batch {cfg.batch} cannot be shared equally by {world} ranks")
    if cfg.batch > samples:
        raise ConfigError(
            f"batch {cfg.batch} is more than the {samples} training samples there are"
        )
    return min(samples // cfg.batch, limit or samples)
