"""DistributedDataParallel by one config: the same model on every rank, gradients averaged.

    wrapper = DDPWrapper(model, config)
    model = wrapper.setup()
    with wrapper.autocast():
        loss = loss_of(model(inputs), targets)

What `setup` returns is torch's own module: nothing of this file runs in a step.
Source: torch.nn.parallel.DistributedDataParallel; S. Li et al., VLDB 2020.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from boxcar.shared.errors import InputError
from boxcar.training import run_manifest, torch_private
from boxcar.training.parallel import sharding
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.ranks.ranks import Ranks
from boxcar.training.reporting.say import say_on_main

# --- Activation checkpointing: a block's activations are computed again instead of being kept.
# It costs about a third more computation and saves all activations inside the blocks. The blocks'
# names, parameters and state dicts stay as they are.


def recompute_blocks(model: nn.Module, wrap_blocks: Sequence[Any]) -> int:
    """Let each of these blocks recompute; returns how many. A second call adds nothing.

    Raises InputError for a block that the model does not have.
    """
    names = {name for unit in sharding.named_units(model, wrap_blocks) for name in unit}
    blocks = [module for name, module in model.named_modules() if name in names]
    for block in blocks:
        if "forward" not in vars(block):
            # Not reentrant: the reentrant kind marks parameters ready twice under DDP.
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
    return len(blocks)


_REDUCE_HOOKS = {
    torch.bfloat16: default_hooks.bf16_compress_hook,
    torch.float16: default_hooks.fp16_compress_hook,
}


class DDPWrapper:
    """One model on its way onto the ranks and back."""

    def __init__(self, model: nn.Module, config: DistributedConfig) -> None:
        if config.strategy == "fsdp":
            raise InputError("DDPWrapper was given strategy 'fsdp': use FSDPWrapper, or 'ddp'")
        self.config = config
        self.unwrapped = model
        """The model itself, for its state dict; SyncBatchNorm may take its BatchNorms' places."""

    def setup(self, rank: int | None = None, world_size: int | None = None) -> nn.Module:
        """Join the ranks where that is still to do, and return the model to train with.

        The model is moved to this rank's device if it is on the CPU. One rank, or strategy
        'single', gets it back without DDP around it. `rank` and `world_size` start a group where no
        launcher did (mp.spawn), and must be the launcher's where one did. Raises InputError, also
        for a model on another rank's GPU.
        """
        here = ranks.join(self.config, rank, world_size)
        problems = [
            *other_numbers(here, rank, world_size),
            *foreign_devices({p.device for p in self.unwrapped.parameters()}, here),
        ]
        if problems:
            raise InputError(problems)
        run_manifest.record(ddp=_facts(self.config, here))
        self.unwrapped.to(here.device)
        if self.config.activation_checkpointing:
            recompute_blocks(self.unwrapped, self.config.wrap_blocks)
        if here.world == 1 or self.config.strategy == "single":
            return self.unwrapped
        if self.config.sync_batchnorm:
            self.unwrapped = _sync_batchnorm(self.unwrapped, here)
        return self._wrap(here)

    def cleanup(self) -> None:
        """Let go of the process group; the wrapped model is useless afterwards, `unwrapped` not."""
        ranks.leave()

    def all_reduce_metrics(self, metrics: Mapping[str, float | torch.Tensor]) -> dict[str, float]:
        """The mean over ranks of each metric; see ranks.all_reduce_metrics."""
        return ranks.all_reduce_metrics(metrics)

    def autocast(self) -> torch.autocast:
        """The context of forward and loss: the config's param dtype, or nothing for fp32."""
        dtype = self.config.precision.param_dtype
        is_low = dtype != torch.float32
        return torch.autocast(
            ranks.current().device.type, dtype if is_low else torch.bfloat16, enabled=is_low
        )

    def _wrap(self, here: Ranks) -> DistributedDataParallel:
        wrapped = DistributedDataParallel(
            self.unwrapped,
            device_ids=[here.device] if here.device.type == "cuda" else None,
            find_unused_parameters=self.config.find_unused_parameters,
        )
        hook = _REDUCE_HOOKS.get(self.config.precision.reduce_dtype)
        if hook is not None:
            wrapped.register_comm_hook(None, hook)
        return wrapped


def _facts(config: DistributedConfig, here: Ranks) -> dict[str, Any]:
    """What of it can change numbers."""
    precision = config.precision
    return {
        "strategy": config.strategy,
        "param_dtype": str(precision.param_dtype),
        "reduce_dtype": str(precision.reduce_dtype),
        "is_batchnorm_synced": config.sync_batchnorm and here.device.type == "cuda",
        "is_recomputed": config.activation_checkpointing,
    }


def other_numbers(here: Ranks, rank: int | None, world: int | None) -> list[str]:
    given = {"rank": (rank, here.rank), "world_size": (world, here.world)}
    return [
        f"setup was called with {name} {said}, but this process has {name} {is_now}: pass what "
        "ranks.join() returned, or nothing"
        for name, (said, is_now) in given.items()
        if said not in (None, is_now)
    ]


def foreign_devices(found: set[torch.device], here: Ranks) -> list[str]:
    """One problem for each device that is neither this rank's nor the CPU."""
    return [
        f"the model lies on {device}, but the device of rank {here.rank} is {here.device}, by its "
        f"LOCAL_RANK {here.local_rank}: build it on the CPU or on ranks.join().device, and never "
        "use RANK as the number of a GPU"
        for device in sorted(found - {here.device, torch.device("cpu")}, key=str)
    ]


def _sync_batchnorm(model: nn.Module, here: Ranks) -> nn.Module:
    is_plain = (
        torch_private.is_batch_norm(m) and not isinstance(m, nn.SyncBatchNorm)
        for m in model.modules()
    )
    if not any(is_plain):
        return model
    if here.device.type != "cuda":
        say_on_main(
            "SyncBatchNorm needs CUDA: on the CPU every rank normalises by its own share of the "
            "batch, so results depend on the number of ranks"
        )
        return model
    synced: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    return synced
