"""One cell on its way: its latents, its steps, its measuring, its saving.

On one rank and a CPU, a cell that was killed and resumed ends bit-equal to one that was not.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from typing import Any

import torch
from config import Config
from data import SPLITS, Pairs, Turns, fetched, latents
from measure import errors
from models import Encoder, Operator, relative_error
from torch import Tensor

from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.training import (
    Cadence,
    Checkpointer,
    DDPWrapper,
    DistributedConfig,
    GradientAccumulator,
    Preemption,
    RankAwareDataLoader,
    TrainingState,
    compile_model,
    progress,
    ranks,
    run_manifest,
)

BETAS = (0.9, 0.95)
WARMUP_STEPS = 20
REPORT_EVERY_STEPS = 10


class Cell:
    """Data, model, place and best result of one cell."""

    def __init__(self, args: argparse.Namespace, cfg: Config) -> None:
        self.args, self.cfg = args, cfg
        # In a step of one task the other tasks' decoders get no gradient, on all ranks alike.
        self.config = DistributedConfig(
            gradient_accumulation_steps=cfg.accumulate,
            find_unused_parameters=len(cfg.tasks) > 1,
        )
        self.ranks = ranks.join(self.config)
        self.stop = Preemption()
        self.load_data()
        self.make_model()
        self.numbers: dict[str, float] = {"loss_sum": 0.0, "train_loss": 0.0}
        self.state = TrainingState(
            model=self.model,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            loader=self.turns,
            numbers=self.numbers,
        )
        self.checkpointer = Checkpointer(args.out, self.state, identity=self.identity())
        self.cadence = Cadence(self.checkpointer)

    def identity(self) -> dict[str, Any]:
        """What must be the same to go on: all but how many processes read."""
        words = {"epochs": self.args.epochs, "limit_batches": self.args.limit_batches}
        data = {task: pairs.made_from for task, pairs in self.pairs.items()}
        settings = dataclasses.asdict(dataclasses.replace(self.cfg, workers=0))
        return settings | words | {"data": data}

    def load_data(self) -> None:
        """Fetch the files, fill the caches, and make this rank's loaders."""
        cfg, files = self.cfg, fetched(self.args.data, self.cfg.tasks)
        self.pairs = {task: Pairs(files[task, "train"]) for task in cfg.tasks}
        encoders = {task: Encoder(self.pairs[task].inputs, cfg.patch) for task in cfg.tasks}
        self.latents = {
            (task, split): latents(files[task, split], encoders[task], cfg.workers)
            for task in cfg.tasks
            for split in SPLITS
        }
        self.turns = Turns({task: self.loader(task) for task in cfg.tasks})
        whole = max(1, len(self.turns) // cfg.accumulate)
        self.steps_per_epoch = min(whole, self.args.limit_batches or whole)
        self.total_steps = self.args.epochs * self.steps_per_epoch

    def loader(self, task: str) -> RankAwareDataLoader:
        """This rank's share of a task's training latents."""
        cfg, samples = self.cfg, len(self.pairs[task])
        if cfg.batch % self.ranks.world or cfg.batch > samples:
            raise InputError(
                f"batch {cfg.batch} should be shared equally by {self.ranks.world} ranks and be no "
                f"more than the {samples} samples of {task}"
            )
        return RankAwareDataLoader(
            self.latents[task, "train"],
            self.config,
            batch_size=cfg.batch // self.ranks.world,
            seed=cfg.seed,
            num_workers=cfg.workers,
            uneven="drop",
        )

    def make_model(self) -> None:
        """The network on this rank, compiled where the config asks for it, and its optimizer."""
        cfg = self.cfg
        torch.manual_seed(cfg.seed)
        self.wrapper = DDPWrapper(Operator(self.pairs, cfg.patch, cfg.layers), self.config)
        self.model = self.wrapper.setup()
        if cfg.compile:
            compile_model(self.model, self.config, mode=cfg.compile_mode)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), cfg.lr, BETAS, weight_decay=cfg.weight_decay, fused=True
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.share_of_lr)
        self.accumulator = GradientAccumulator(cfg.accumulate, clip_norm=1.0)
        share = cfg.batch // self.ranks.world
        effective = self.accumulator.effective_batch_size(share, self.ranks.world)
        run_manifest.record(tasks=cfg.tasks, effective_batch=effective, precision="fp32")

    def share_of_lr(self, step: int) -> float:
        """The learning rate at a step over cfg.lr: a short rise, then a cosine down to 0."""
        rise = min(1.0, (step + 1) / WARMUP_STEPS)
        return rise * (1 + math.cos(math.pi * step / self.total_steps)) / 2

    def resume(self) -> None:
        """Go on from latest.pth where there is one."""
        if self.checkpointer.load_latest():
            self.say(f"resumed after step {self.state.step}/{self.total_steps}")

    def train(self) -> None:
        """Take all steps that are still to be taken."""
        state = self.state
        while state.step < self.total_steps:
            self.count_step(self.train_step())
            if state.step % self.steps_per_epoch == 0:
                self.finish_epoch()
            if self.cadence.is_due(state.step) or state.step == self.total_steps:
                self.checkpointer.save_async()
            if self.stop.should_stop():
                self.save_and_stop()
        self.checkpointer.wait()

    def train_step(self) -> Tensor:
        """One optimizer step on this rank's share; the mean loss of its micro-batches."""
        losses = []
        for turn in range(self.cfg.accumulate):
            number = self.state.step * self.cfg.accumulate + turn
            task, (tokens, targets) = self.turns.take(number)
            with self.accumulator.micro_step(self.model, number):
                fields = self.model(task, tokens.to(self.ranks.device))
                loss = relative_error(fields, targets.to(self.ranks.device)).mean()
                self.accumulator.step(loss, self.optimizer, number)
            losses.append(loss.detach())
        self.scheduler.step()
        return torch.stack(losses).mean()

    def count_step(self, loss: Tensor) -> None:
        """Move on by one step, and report every few."""
        mean = self.wrapper.all_reduce_metrics({"loss": loss.item()})["loss"]
        self.state.step += 1
        self.numbers["loss_sum"] += mean
        if self.state.step % REPORT_EVERY_STEPS == 0:
            self.report(loss=mean)

    def finish_epoch(self) -> None:
        """Measure, and keep the best."""
        numbers, state = self.numbers, self.state
        numbers["train_loss"] = numbers["loss_sum"] / self.steps_per_epoch
        numbers["loss_sum"] = 0.0
        state.epoch += 1
        found = self.errors("val") if self.ranks.is_main else {}
        mean = sum(found.values()) / len(self.cfg.tasks)
        self.checkpointer.save_best(mean, mode="min")  # rank 0's mean counts
        self.report(loss=numbers["train_loss"], **{f"error_{task}": found[task] for task in found})
        said = "  ".join(f"{task} {error:.4f}" for task, error in found.items())
        place = f"epoch {state.epoch}/{self.args.epochs}"
        self.say(f"{place}  loss {numbers['train_loss']:.4f}  relative error on val: {said}")

    def errors(self, split: str) -> dict[str, float]:
        """Each task's relative error on a split."""
        net, device = self.wrapper.unwrapped, self.ranks.device
        # Not the compiled call: its graphs are those of a training step's shapes.
        return errors(lambda task, tokens: net.forward(task, tokens.to(device)), self.split(split))

    def errors_of_the_mean(self, split: str) -> dict[str, float]:
        """The same for who always answers with the training's mean field."""
        decoders = self.wrapper.unwrapped.decoders
        return errors(lambda task, _: decoders[task].mean, self.split(split))

    def split(self, split: str) -> dict[str, Any]:
        """Each task's latents of a split."""
        return {task: self.latents[task, split] for task in self.cfg.tasks}

    def save_and_stop(self) -> None:
        """Save, and leave, all ranks together."""
        self.checkpointer.save()
        self.say(f"stopped at step {self.state.step}, saved: the same command goes on from here")
        self.stop.exit()

    def finish(self) -> None:
        """metrics.json: what the best weights reach on the test split, beside the mean field."""
        if not self.ranks.is_main:
            return
        best = torch.load(self.args.out / "best.pth", weights_only=True)
        self.wrapper.unwrapped.load_state_dict(best["model"])
        values = self.results(best)
        text = json.dumps(values, indent=2, allow_nan=False) + "\n"
        atomic.write_whole(self.args.out / "metrics.json", text.encode())
        for task, error in values["error"].items():
            trivial = values["error_of_the_mean_field"][task]
            self.say(f"{task}: relative error on test {error:.4f}, of the mean field {trivial:.4f}")

    def results(self, best: dict[str, Any]) -> dict[str, Any]:
        """What metrics.json holds, of a network with the best weights."""
        return {
            "error": self.errors("test"),
            "error_of_the_mean_field": self.errors_of_the_mean("test"),
            "best_epoch": best["epoch"],
            "best_error_on_val": best["metric"],
            "epochs": self.state.epoch,
            "train_loss": self.numbers["train_loss"],
            "params": sum(p.numel() for p in self.model.parameters()),
            "world_size": self.ranks.world,
        }

    def report(self, **values: float) -> None:
        """One line of progress.jsonl."""
        place = {"total_steps": self.total_steps, "epoch": self.state.epoch}
        progress.report(step=self.state.step, **place, **values)

    def say(self, line: str) -> None:
        """One line of the log, from one rank."""
        if self.ranks.is_main:
            print(line, flush=True)
