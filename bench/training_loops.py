"""One training loop, each part of which is the training layer's or written by hand.

Whoever imports this imports no torch: the ranks do, when they call.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

WORLD = 2
PARTS = ("wrapper", "accumulator", "loader", "should_stop", "progress", "cadence")
LAYERS, TOKENS, FEATURES = 4, 32, 32
NARROW, NARROW_BATCH = 16, 4
# Imported by their names here, from wherever they live.
_NAMES = ("DistributedConfig", "DDPWrapper", "GradientAccumulator", "RankAwareDataLoader")
_NAMES += ("TrainingState", "Checkpointer", "Preemption")


def loop(
    strategy: str,
    parts: Iterable[str],
    width: int,
    batch: int,
    clip_norm: float | None,
    *,
    layers: int = LAYERS,
) -> Iterator[None]:
    """A training loop that stops after each step; what `parts` does not name is written by hand."""
    import torch

    model = wrapped(strategy, parts, width, layers=layers)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    step = step_of(parts, model, optimizer, clip_norm)
    after = after_each_step(parts)
    for number, (inputs, targets) in enumerate(batches_of(parts, batch)):
        loss = step(number, inputs, targets)
        for call in after:
            call(number, loss)
        yield


def step_of(
    parts: Iterable[str],
    model: Any,
    optimizer: Any,
    clip_norm: float | None,
    check_finite: str = "every step",
) -> Callable[..., Any]:
    """What takes a step, of its number, inputs and targets, and gives its loss."""
    if "accumulator" in parts:
        return _accumulated(model, optimizer, clip_norm, check_finite)
    return _by_hand(model, optimizer, clip_norm)


def batches_of(parts: Iterable[str], batch: int) -> Iterator[Any]:
    """Inputs and targets, [batch, TOKENS, FEATURES] each, without an end."""
    return _layers_batches(batch) if "loader" in parts else _batches(batch)


def _by_hand(model: Any, optimizer: Any, clip_norm: float | None) -> Callable[..., Any]:
    import torch

    def step(number: int, inputs: Any, targets: Any) -> Any:
        loss = loss_of(model(inputs), targets)
        loss.backward()
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def _accumulated(
    model: Any, optimizer: Any, clip_norm: float | None, check_finite: str
) -> Callable[..., Any]:
    from boxcar.training import GradientAccumulator

    accumulator = GradientAccumulator(1, clip_norm=clip_norm, check_finite=check_finite)

    def step(number: int, inputs: Any, targets: Any) -> Any:
        with accumulator.micro_step(model, number):
            loss = loss_of(model(inputs), targets)
            accumulator.step(loss, optimizer, number)
        return loss.detach()

    return step


def after_each_step(parts: Iterable[str]) -> list[Callable[[int, Any], Any]]:
    found: list[Callable[[int, Any], Any]] = []
    if "should_stop" in parts:
        from boxcar.training import Preemption

        stop = Preemption()
        found.append(lambda number, loss: stop.should_stop())
    if "progress" in parts:
        from boxcar.training import progress

        found.append(lambda number, loss: progress.report(step=number, loss=loss))
    if "cadence" in parts:
        from boxcar.training import Cadence

        cadence = Cadence(_Paced())
        found.append(lambda number, loss: cadence.is_due(number))
    return found


class _Paced:
    """A Checkpointer whose last save was at the first step, and whose next is due in a while."""

    def __init__(self) -> None:
        from boxcar.training.checkpoint.cadence import Pace

        self.pace = Pace(0, stall_s=0.1, write_s=1.0, step_s=0.003, steps=100_000)


def _layers_batches(batch: int) -> Iterator[Any]:
    from boxcar.training import RankAwareDataLoader

    loader = RankAwareDataLoader(data(), batch_size=batch)
    while True:
        yield from loader


def _batches(batch: int) -> Iterator[Any]:
    import torch
    from torch.utils.data import DataLoader, DistributedSampler

    is_alone = not torch.distributed.is_initialized()
    sampler: Any = None if is_alone else DistributedSampler(data())
    loader = DataLoader(data(), batch_size=batch, shuffle=is_alone, sampler=sampler, drop_last=True)
    for epoch in itertools.count():
        if sampler is not None:
            sampler.set_epoch(epoch)
        yield from loader


def wrapped(
    strategy: str, parts: Iterable[str], width: int, dtype: Any = None, layers: int = LAYERS
) -> Any:
    """A new model on the ranks, by the layer where `parts` has "wrapper"."""
    model = new_model(width, layers).to(dtype=dtype)
    if "wrapper" not in parts:
        return _wrapped_by_hand(strategy, model)
    from boxcar.training import DDPWrapper, DistributedConfig, FSDPWrapper, ranks

    config = DistributedConfig(strategy=strategy, wrap_blocks=_blocks(strategy))
    if strategy != "fsdp":
        return DDPWrapper(model, config).setup()
    me = ranks.current()
    return FSDPWrapper(model, config).setup(me.rank, me.world)


def _wrapped_by_hand(strategy: str, model: Any) -> Any:
    import torch

    if not torch.distributed.is_initialized():
        return model
    if strategy == "ddp":
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (WORLD,))
    for block in model:
        if type(block).__name__ in _blocks(strategy):
            fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def _blocks(strategy: str) -> tuple[str, ...]:
    return ("TransformerEncoderLayer",) if strategy == "fsdp" else ()


def new_model(width: int, count: int) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = [
        nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        for _ in range(count)
    ]
    return nn.Sequential(nn.Linear(FEATURES, width), *layers, nn.Linear(width, FEATURES), nn.Tanh())


@functools.cache
def data() -> Any:
    """Long enough for no epoch to end within a measurement. One copy for all loops."""
    import torch
    from torch.utils.data import TensorDataset

    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(12_000, TOKENS, FEATURES, generator=generator)
    return TensorDataset(inputs, inputs.cumsum(1).tanh())


def loss_of(outputs: Any, targets: Any) -> Any:
    """A mean over the batch, [] from two of [batch, TOKENS, FEATURES]."""
    return (outputs - targets).square().mean()


def import_all(parts: Iterable[str]) -> None:
    """What a train script has at its top."""
    for name in ("torch", "torch.distributed", "torch.nn.parallel", "torch.utils.data"):
        importlib.import_module(name)
    if "wrapper" in parts:
        layer = importlib.import_module("boxcar.training")
        for name in _NAMES:
            getattr(layer, name)
        importlib.import_module("boxcar.training.progress")


def join(parts: Iterable[str]) -> None:
    """Meet the other ranks."""
    import torch

    torch.set_num_threads(1)
    if "wrapper" not in parts:
        torch.distributed.init_process_group("gloo")
        return
    from boxcar.training import ranks

    ranks.join()
