"""Gradient accumulation: one optimizer step from the mean gradient of several micro-batches.

    accumulator = GradientAccumulator(4, clip_norm=1.0)
    for step_idx, (inputs, targets) in enumerate(loader, loader.batches_done):
        with accumulator.micro_step(model, step_idx, is_last=step_idx + 1 == len(loader)):
            loss = loss_of(model(inputs), targets)
            stepped = accumulator.step(loss, optimizer, step_idx)

A window is `accumulation_steps` micro-batches; the ranks exchange gradients in its last backward
only. The last window of an epoch may be shorter (`is_last`): it is the mean of the micro-batches
that it has, so its step is as long as the others', and each of its samples weighs a little more.

Gradients of an open window are in no checkpoint: save where `step` returned True.

Not covered: a loss that is a mean over a number of tokens that differs between micro-batches; the
mean of such means is not the mean over all tokens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from boxcar.shared.errors import DivergedError, InputError
from boxcar.training import run_manifest, stall, torch_private
from boxcar.training.finite_check import FiniteCheck
from boxcar.training.ranks import ranks
from boxcar.training.reporting import soon
from boxcar.training.reporting.say import say_once

_SMALL_NUMEL = 4096


class GradientAccumulator:
    """Runs backward, and at a window's end clips, steps and clears the gradients."""

    grad_norm: float = math.nan
    """The last window's, over all ranks and parameters, unscaled and before clipping; only where
    `clip_norm` is given."""
    _engine: Any = None

    def __init__(
        self,
        accumulation_steps: int,
        scaler: torch.amp.GradScaler | None = None,
        clip_norm: float | None = None,
        check_finite: str = "every step",
    ) -> None:
        """`clip_norm`: the largest L2 norm of a window's mean gradient. None: any; math.inf: any,
        but `grad_norm` is known.

        `check_finite`: "every step" waits for the GPU once in each window. "every 10" looks at
        every tenth, so a DivergedError comes up to twenty windows late; but before a checkpoint is
        written, the ranks leave or the process ends. `grad_norm` is then that of the last window
        which was looked at.
        """
        if accumulation_steps < 1:
            raise InputError(
                f"accumulation_steps should be 1 or more, found {accumulation_steps!r}"
            )
        if clip_norm is not None and not clip_norm > 0:
            raise InputError(f"clip_norm should be above 0, or None, found {clip_norm!r}")
        self.accumulation_steps = accumulation_steps
        self._scaler = scaler if scaler is not None and scaler.is_enabled() else None
        self._clip_norm = clip_norm
        self._first: int | None = None
        self._latest: int | None = None
        self._closes = False
        self._is_shared = False
        self._is_inside = False
        self._losses: list[tuple[int, Tensor]] = []
        every = _every(check_finite)
        self._rarely = FiniteCheck(every) if every > 1 else None
        run_manifest.record(accumulation_steps=accumulation_steps, clip_norm=clip_norm)

    @contextmanager
    def micro_step(self, module: nn.Module, step_idx: int, is_last: bool = False) -> Iterator[None]:
        """Around forward and `step`: DDP decides in the forward whether this backward exchanges.

        `step_idx` counts micro-batches, the same on all ranks; `is_last` closes a short window.
        """
        self._move_to(step_idx, is_last)
        self._is_shared = _exchanges(module)
        self._engine = module if _is_engine(module) else None
        self._is_inside = True
        try:
            with self._exchange_only_at_the_end(module):
                yield
        finally:
            self._is_inside = False

    def step(self, loss: Tensor, optimizer: Optimizer, step_idx: int) -> bool:
        """Backward of a scalar mean loss; True where the window closed and the optimizer was asked.

        A GradScaler that met an overflow skips that optimizer step itself. Raises DivergedError
        with the rank whose loss is not finite, on all ranks. That is judged by the exchanged
        gradient, which is the same everywhere: no collective more than training needs (FSDP: one
        number per window), and one wait for the GPU, which has a fused Adam's step to do meanwhile.
        Without `clip_norm` only the small parameters (biases, norms) are looked at, which a loss
        that is no number reaches in every layer.
        """
        stall.beat(step_idx)
        if self._engine is not None:
            return self._step_engine(self._engine, loss)
        if not self._is_inside:
            self._say_outside()
        if step_idx != self._latest:
            self._move_to(step_idx, is_last=False)
        self._losses.append((step_idx, loss.detach()))
        share = loss / self.accumulation_steps if self.accumulation_steps > 1 else loss
        _backward(self._scaler.scale(share) if self._scaler else share)
        if self._closes:
            self._finish(optimizer)
        return self._closes

    def effective_batch_size(self, micro_batch: int, world_size: int) -> int:
        """Samples behind one optimizer step; the learning rate belongs to this number."""
        return micro_batch * self.accumulation_steps * world_size

    def _move_to(self, step_idx: int, is_last: bool) -> None:
        if self._first is None:
            self._first = step_idx
        elif self._latest is not None and step_idx < self._latest:
            raise InputError(
                f"step_idx went from {self._latest} back to {step_idx} inside a window of "
                f"{self.accumulation_steps}: give is_last=True with the last batch of an epoch"
            )
        self._latest = step_idx
        self._closes = is_last or self._length() >= self.accumulation_steps

    def _length(self) -> int:
        """Counted by step_idx, so that all ranks have the same even if one skipped a batch."""
        assert self._first is not None and self._latest is not None
        return self._latest - self._first + 1

    def _exchange_only_at_the_end(self, module: nn.Module) -> Any:
        if self.accumulation_steps == 1:
            return nullcontext()
        wrapper: Any = module
        if hasattr(wrapper, "set_requires_gradient_sync"):  # FSDP2
            wrapper.set_requires_gradient_sync(self._closes)
        elif not self._closes and hasattr(wrapper, "no_sync"):  # DDP
            return wrapper.no_sync()
        return nullcontext()

    def _finish(self, optimizer: Optimizer) -> None:
        parameters = [p for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        if not parameters:
            raise InputError(
                "no parameter of the optimizer got a gradient: it was created for a different "
                "model than the loss comes from, or all of its parameters are frozen"
            )
        if self._scaler:
            # Before the norm is taken and clipped, which is meant for true gradients.
            self._scaler.unscale_(optimizer)
        if self._length() != self.accumulation_steps:
            for parameter in parameters:
                parameter.grad.mul_(self.accumulation_steps / self._length())
        norm = self._look_and_clip(parameters)
        if self._rarely is not None:
            self._step_unread(self._rarely, optimizer, norm)
        else:
            self._step_read(optimizer, norm)
        optimizer.zero_grad(set_to_none=True)
        self._first = self._latest = None
        self._losses.clear()

    def _step_unread(self, check: FiniteCheck, optimizer: Optimizer, norm: Tensor) -> None:
        """The step now, and whether it was one of finite numbers later."""
        assert self._latest is not None
        # A scaled gradient may overflow: the scaler leaves that step out by itself.
        check.note(self._latest, (loss for _, loss in self._losses), None if self._scaler else norm)
        if self._clip_norm is not None:
            self.grad_norm = check.grad_norm
        if self._scaler:
            self._scaler.step(optimizer)
            self._scaler.update()
        elif self._may_go_ahead(optimizer, norm):
            torch_private.step_unless(~torch.isfinite(norm), optimizer)
        else:
            optimizer.step()

    def _step_read(self, optimizer: Optimizer, norm: Tensor) -> None:
        is_ahead = self._may_go_ahead(optimizer, norm)
        number = soon.on_its_way(norm) if is_ahead else _number(norm)
        if is_ahead:
            # The GPU takes it, or leaves it out, while the host waits for the norm.
            torch_private.step_unless(~torch.isfinite(norm), optimizer)
        found = number()
        if self._clip_norm is not None:
            self.grad_norm = found
        if not math.isfinite(found):
            self._judge()
        if self._scaler:
            self._scaler.step(optimizer)
            self._scaler.update()
        elif not is_ahead:
            optimizer.step()

    def _step_engine(self, engine: Any, loss: Tensor) -> bool:
        """DeepSpeed scales, accumulates, clips and steps by itself: by its own backward alone."""
        if self.accumulation_steps > 1 or self._scaler or self._clip_norm is not None:
            raise InputError(
                "the model is a DeepSpeed engine, which accumulates, scales and clips by its JSON: "
                "write GradientAccumulator(1), or each would be done twice"
            )
        is_last = bool(engine.is_gradient_accumulation_boundary())
        engine.backward(loss)
        engine.step()
        self._first = self._latest = None
        if self._rarely is not None:
            self._rarely.note(engine.global_steps, [loss], None)
        elif not math.isfinite(float(loss.detach())):
            raise DivergedError(
                f"the loss of rank {ranks.current().rank} is not finite: look at that rank's "
                "batch, then at the learning rate"
            )
        return is_last

    def _say_outside(self) -> None:
        if self.accumulation_steps > 1 and ranks.current().world > 1:
            say_once(
                "accumulator.step was called outside of micro_step: the ranks exchange gradients "
                f"{self.accumulation_steps} times for each step. Put `with accumulator.micro_step("
                "model, step_idx):` around forward and step"
            )

    def _look_and_clip(self, parameters: list[Tensor]) -> Tensor:
        """The norm of the whole gradient, also where it is sharded, or of the small parameters'."""
        if self._clip_norm is None:
            return _norm(_small(parameters))
        return nn.utils.clip_grad_norm_(parameters, self._clip_norm)

    def _may_go_ahead(self, optimizer: Optimizer, norm: Tensor) -> bool:
        """Whether the device can judge by itself whether to take the step."""
        is_free = self._scaler is None and _is_under_way(norm)
        return is_free and torch_private.takes_step_unless(optimizer)

    def _judge(self) -> None:
        """Raise, unless it is an overflow of the scaled loss, which the scaler mends itself."""
        bad = [(i, float(loss)) for i, loss in self._losses if not math.isfinite(float(loss))]
        guilty = ranks.who(bool(bad)) if self._is_shared else [ranks.current().rank] * bool(bad)
        where = f"in the window of step_idx {self._first} to {self._latest}"
        if guilty:
            here = "".join(f"; here it is {loss} at step_idx {i}" for i, loss in bad[:1])
            raise DivergedError(
                f"the loss of rank {', '.join(map(str, guilty))} is not finite {where}{here}: look "
                "at that rank's batch, then at the learning rate; no step was taken"
            )
        if not self._scaler:
            raise DivergedError(
                f"the gradient is not finite {where}, though every loss is: an operation overflows "
                "in the backward pass; no step was taken"
            )


def _backward(loss: Tensor) -> None:
    try:
        loss.backward()
    except RuntimeError as error:
        # torch advises retain_graph=True, with which each gradient would count twice.
        if "through the graph a second time" not in str(error):
            raise
        raise InputError(
            "accumulator.step runs backward itself: take loss.backward() out of the loop"
        ) from error


def _every(check_finite: str) -> int:
    if check_finite == "every step":
        return 1
    if found := re.fullmatch(r"every ([1-9]\d*)", str(check_finite)):
        return int(found[1])
    raise InputError(
        f"check_finite should be 'every step' or, say, 'every 10', found {check_finite!r}"
    )


def _is_engine(module: Any) -> bool:
    """DeepSpeed's, known by what only it has; deepspeed is not imported for this."""
    return hasattr(module, "is_gradient_accumulation_boundary") and hasattr(module, "backward")


def _exchanges(module: nn.Module) -> bool:
    """Whether gradients are the same on all ranks after backward, so that all judge alike."""
    return hasattr(module, "no_sync") or hasattr(module, "set_requires_gradient_sync")


def _small(parameters: list[Tensor]) -> list[Tensor]:
    """Those whose norm costs nothing; the smallest four where all are large."""
    small = [p for p in parameters if p.numel() <= _SMALL_NUMEL]
    return small or sorted(parameters, key=Tensor.numel)[:4]


def _norm(parameters: list[Tensor]) -> Tensor:
    if hasattr(nn.utils, "get_total_norm"):  # torch 2.6
        return nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    return nn.utils.clip_grad_norm_(parameters, math.inf)


def _number(norm: Tensor) -> Callable[[], float]:
    return (norm.full_tensor() if hasattr(norm, "full_tensor") else norm).item


def _is_under_way(norm: Tensor) -> bool:
    """Whether to read it is to wait for one GPU; what is sharded is not known to any."""
    return norm.is_cuda and not hasattr(norm, "full_tensor")
