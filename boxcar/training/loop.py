"""The one door: an object that holds what a training loop needs, on top of the parts.

    training = Training(args.out)
    model = training.wrap(Net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loader = training.batches(data, batch_size=64, num_workers=6)

    for epoch in training.epochs(args.epochs, optimizer=optimizer):   # or training.steps(2000, ...)
        for inputs, targets in loader:
            ...                          # forward, backward, optimizer.step(): yours
            training.step(loss=loss)     # the last line: count, report, save where due, stop
        training.save_best(validate(model))

The loop resumes before its first turn and saves after its last.

Nothing has a second implementation here: `training.state`, `.checkpointer`, `.loader` and `.me` are
the parts themselves. Counted are optimizer steps: with accumulated gradients call `step` where the
optimizer stepped.

Not covered: an iteration that draws a batch ahead, for the next step. What it drew is in no
checkpoint; draw at the beginning of each step.
"""

from __future__ import annotations

import atexit
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from boxcar.shared.errors import DivergedError, InputError
from boxcar.training import finite_check, progress
from boxcar.training.checkpoint import checkpoint_file
from boxcar.training.checkpoint.cadence import Cadence
from boxcar.training.checkpoint.checkpointer import Checkpointer
from boxcar.training.checkpoint.training_state import TrainingState, weights
from boxcar.training.data.loader import RankAwareDataLoader
from boxcar.training.finite_check import FiniteCheck
from boxcar.training.parallel.ddp import DDPWrapper
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.ranks.preemption import Preemption
from boxcar.training.reporting.say import say_on_main

_LOOK_EVERY = 10


class Training:
    """One training in one folder, on as many ranks as the launcher has started."""

    def __init__(
        self,
        out: str | os.PathLike[str],
        config: DistributedConfig | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        keep: int = 2,
    ) -> None:
        """Joins the ranks. `settings`: what must be the same to go on, such as learning rate and
        width (plain values); `keep`: how many checkpoints stay. Raises as `ranks.join` does.
        """
        self.config = config or DistributedConfig()
        self.me = ranks.join(self.config)
        self.loader: RankAwareDataLoader | None = None
        self._out, self._settings, self._keep = out, settings, keep
        self._stop = Preemption()
        self._check = FiniteCheck(_LOOK_EVERY)
        self._wrapper: Any = None
        self._state: TrainingState | None = None
        self._saved: tuple[int, int] | None = None
        self._is_asked = False
        # Whether a resume from here would be exact: not inside an epoch whose place nobody knows.
        self._is_place_known = True
        atexit.register(_leave)

    @property
    def device(self) -> torch.device:
        """This rank's."""
        return self.me.device

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which writes and prints for all."""
        return self.me.is_main

    @property
    def state(self) -> TrainingState:
        """Step, epoch and the parts; InputError before `resume`."""
        if self._state is None:
            raise InputError(
                "Training: nothing was resumed yet: for epoch in training.epochs(count, "
                "optimizer=optimizer), or call training.resume(optimizer=optimizer) before"
            )
        return self._state

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model on this rank's device, in DDP or FSDP as the config says."""
        if self._wrapper is not None:
            raise InputError("Training.wrap was called twice: a training has one model")
        if self.config.strategy == "fsdp":
            from boxcar.training.parallel.fsdp import FSDPWrapper

            self._wrapper = FSDPWrapper(model, self.config)
        else:
            self._wrapper = DDPWrapper(model, self.config)
        wrapped: nn.Module = self._wrapper.setup()
        self._model = wrapped
        return wrapped

    @property
    def unwrapped(self) -> nn.Module:
        """The model itself, for its state dict."""
        self._refuse_unwrapped()
        model: nn.Module = self._wrapper.unwrapped
        return model

    def autocast(self) -> AbstractContextManager[Any]:
        """Around forward and loss: the config's precision."""
        self._refuse_unwrapped()
        context: AbstractContextManager[Any] = self._wrapper.autocast()
        return context

    def batches(self, dataset: Any, *, batch_size: int, **options: Any) -> RankAwareDataLoader:
        """This rank's batches. `batch_size` is that of all ranks together, so that one GPU and
        eight train alike; `options` are RankAwareDataLoader's.
        """
        each, rest = divmod(batch_size, self.me.world)
        if rest or not each:
            raise InputError(
                f"batch_size {batch_size} is for all ranks together, and {self.me.world} ranks "
                f"cannot share it equally: give a multiple of {self.me.world}"
            )
        self.loader = RankAwareDataLoader(dataset, self.config, batch_size=each, **options)
        return self.loader

    def resume(self, *, model: nn.Module | None = None, **parts: Any) -> bool:
        """Go on from the newest checkpoint, if there is one; False where training begins.

        `parts` are TrainingState's: optimizer, scheduler, scaler, ema, and others of your own. The
        loader of `batches` is among them. Raises as `Checkpointer.load_latest` does.
        """
        if model is None:
            self._refuse_unwrapped()
            model = self._model
        if self.loader is not None:
            parts.setdefault("loader", self.loader)
        self._state = TrainingState(model=model, **parts)
        self.checkpointer = Checkpointer(
            self._out,
            self._state,
            keep=self._keep,
            identity=self._settings,
            is_sharded=self.config.strategy == "fsdp",
        )
        self._cadence = Cadence(self.checkpointer)
        is_resumed = self.checkpointer.load_latest()
        if is_resumed:
            self._saved = self._place()
        return is_resumed

    def epochs(self, count: int, **parts: Any) -> Iterator[int]:
        """The numbers of the epochs that are still to do, the one under way first.

        `parts` are those of `resume`, which is called unless it was before. After the last turn all
        is saved. Without a loader of `batches` nobody knows the place within an epoch: it is saved
        between epochs only, and one that was cut off begins again.
        """
        self._begin(parts)
        if self.loader is None:
            say_on_main(
                "training: no loader of training.batches(), so checkpoints are written between "
                "epochs only"
            )
        while self.state.epoch < count:
            if self.loader is not None and self.loader.epoch < self.state.epoch:
                self.loader.set_epoch(self.state.epoch)  # a loop that was left by `break`
            self._is_place_known = self.loader is not None
            yield self.state.epoch
            self._is_place_known = True
            self.state.epoch += 1
            if self._is_asked:
                self._write()
        self._save_the_end()

    def steps(self, count: int, **parts: Any) -> Iterator[int]:
        """The numbers of the steps that are still to do; each calls `step` once. As `epochs`."""
        self._begin(parts)
        while (number := self.state.step) < count:
            yield number
            if self.state.step != number + 1:
                raise InputError(
                    f"the loop called training.step() {self.state.step - number} times in step "
                    f"{number}: call it once, after optimizer.step()"
                )
        self._save_the_end()

    def step(self, **values: Any) -> None:
        """After each optimizer step, on all ranks: count it, report `values` (loss=, lr=, ...),
        save where a save is due, and after SIGTERM save and leave with 85. The last line of an
        iteration: what a scheduler or an EMA does behind it is not in a checkpoint of now.

        `loss` must be finite: DivergedError (42) at the latest twenty steps later and before
        anything is saved.
        """
        state = self.state
        state.step += 1
        self._note(values.get("loss"))
        progress.report(step=state.step, epoch=state.epoch, **values)
        if self._stop.should_stop():
            if self._is_place_known:
                self.checkpointer.save()
            self._stop.exit()
        is_due = self._cadence.is_due(state.step)
        if not self._is_place_known:
            self._is_asked = self._is_asked or is_due
        elif is_due or (self._is_asked and not self._is_between_epochs):
            self._write()

    def save(self) -> None:
        """Save at the next moment from which a resume is exact: the coming `step`, or the end of
        the epoch whose batches are through. `training.checkpointer.save()` saves at once.
        """
        _ = self.state
        self._is_asked = True

    def save_best(self, metric: float, mode: str = "max") -> bool:
        """Replace best.pth by the weights of now if `metric` (rank 0's) is the best so far."""
        _ = self.state
        return self.checkpointer.save_best(metric, mode)

    def export(self, path: str | os.PathLike[str]) -> None:
        """One file of the bare weights, for `load_state_dict(torch.load(path))`; rank 0 writes it,
        whole or not at all. All ranks call it.
        """
        self._refuse_unwrapped()
        finite_check.settle()
        if self.config.strategy == "fsdp":
            self._wrapper.export_consolidated(path)
        elif self.is_main:
            checkpoint_file.write(Path(path), weights(self._wrapper.unwrapped))

    def finish(self) -> None:
        """Save what is not saved yet, and leave the ranks: for a script that goes on to do other
        things after its loop, or has left it by `break`.
        """
        self._save_the_end()
        if self.loader is not None:
            self.loader.close()
        progress.flush()
        ranks.leave()

    def _begin(self, parts: Mapping[str, Any]) -> None:
        if self._state is None:
            self.resume(**parts)
        elif parts:
            raise InputError(
                f"Training: {', '.join(parts)} came after training.resume(): give all parts there"
            )

    def _save_the_end(self) -> None:
        if self._place() != self._saved:
            self.checkpointer.save()
            self._saved = self._place()
        self.checkpointer.wait()

    def _place(self) -> tuple[int, int]:
        return self.state.step, self.state.epoch

    @property
    def _is_between_epochs(self) -> bool:
        return self.loader is not None and self.loader.epoch > self.state.epoch

    def _write(self) -> None:
        self._is_asked = False
        self._saved = self._place()
        self.checkpointer.save_async()

    def _note(self, loss: Any) -> None:
        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            self._check.note(self.state.step, [loss], None)
        elif isinstance(loss, float) and not math.isfinite(loss):
            raise DivergedError(
                f"the loss of rank {self.me.rank} is {loss} at step {self.state.step}: look at "
                "that rank's batch, then at the learning rate; nothing was saved since"
            )

    def _refuse_unwrapped(self) -> None:
        if self._wrapper is None:
            raise InputError("Training: call model = training.wrap(model) first")


def _leave() -> None:
    """At the interpreter's end, so that it is no line of the script. Not after an error, of which
    the hang's report knows more."""
    if not hasattr(sys, "last_value"):
        finite_check.end_if_diverged()
        ranks.leave()
