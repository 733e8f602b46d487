"""Fully sharded training on torch's FSDP2: every rank holds a share of each parameter.

    wrapper = FSDPWrapper(model, config)
    model = wrapper.setup()
    optimizer = torch.optim.AdamW(model.parameters())   # after setup: it replaces the parameters
    ...
    wrapper.save_distributed_checkpoint(out / "step_00000120", optimizer)

The model stays the same object, with its own names in the state dict. What becomes a unit is
decided in sharding.py; checkpoints are folders of dcp_folder.py, which load on any world size.
All ranks call each method together.

Not covered: models on the meta device (each rank builds the whole model in host memory first), and
tensor or pipeline parallelism.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.checkpoint import checkpoint

from boxcar.shared.errors import InputError
from boxcar.training import run_manifest, torch_private
from boxcar.training.checkpoint import checkpoint_file, dcp_folder, sharded
from boxcar.training.parallel import ddp, sharding
from boxcar.training.parallel.sharding import ShardingPolicy
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.ranks.side_group import SideGroup
from boxcar.training.reporting.say import say_on_main

if TYPE_CHECKING:
    from torch.distributed.fsdp import (
        CPUOffloadPolicy,
        FSDPModule,
        MixedPrecisionPolicy,
        OffloadPolicy,
        fully_shard,
    )
else:
    CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard = (
        torch_private.fsdp2()
    )


class FSDPWrapper:
    """Shards a model over the ranks, and saves and loads it sharded or whole."""

    def __init__(self, model: nn.Module, config: DistributedConfig) -> None:
        if isinstance(model, (FSDPModule, nn.parallel.DistributedDataParallel)):
            raise InputError("FSDPWrapper: the model is wrapped already; pass the unwrapped model")
        self._model = model
        self._config = config
        self._policy: ShardingPolicy | None = None

    def setup(self, rank: int | None = None, world_size: int | None = None) -> nn.Module:
        """Join the ranks, give all of them rank 0's weights, and shard; returns the same model.

        Build the optimizer and call compile_model afterwards. `rank` and `world_size` start a group
        where no launcher did (mp.spawn). Raises InputError where they differ from the launcher's,
        and where the config does not fit the model.
        """
        joined = ranks.join(self._config, rank, world_size)
        self._check_support(joined.device)
        devices = {param.device for param in self._model.parameters()}
        problems = ddp.other_numbers(joined, rank, world_size)
        if problems := [*problems, *ddp.foreign_devices(devices, joined)]:
            raise InputError(problems)
        _send_from_rank_0(self._model, joined.device)
        if joined.device.type == "cuda" and self._config.sync_batchnorm:
            self._model = nn.SyncBatchNorm.convert_sync_batchnorm(self._model)
        self._policy = self._plan(joined)
        _refuse_in_optimizers([weakref.ref(param) for param in self._model.parameters()])
        _shard(self._model, self._policy, joined.device)
        for note in self._policy.notes:
            say_on_main(f"FSDP: {note}")
        run_manifest.record(fsdp=_facts(self._policy))
        return self._model

    def cleanup(self) -> None:
        """Let go of the process group, when training has ended."""
        ranks.leave()

    def all_reduce_metrics(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """The mean of each metric over the ranks, the same on all of them."""
        return ranks.all_reduce_metrics(metrics)

    def autocast(self) -> AbstractContextManager[None]:
        """Nothing: FSDP casts parameters and inputs itself, as the config's precision says."""
        return contextlib.nullcontext()

    @property
    def unwrapped(self) -> nn.Module:
        """The model; FSDP2 wraps no other module around it."""
        return self._model

    def get_sharding_policy(self) -> ShardingPolicy:
        """What `setup` does, or has done: units, bytes on each rank, dtypes. It can be printed."""
        return self._policy or self._plan(ranks.current())

    def save_distributed_checkpoint(
        self, path: str | Path, optimizer: Optimizer | None = None
    ) -> None:
        """Write a new folder, a file from each rank; it has its name only when it is whole.

        Raises InputError where it exists, NoRoomError where the disk is full.
        """
        if optimizer is not None:
            self._check_params(optimizer)
            _check_stepped(self._model, optimizer)
        dcp_folder.save(path, sharded.shard_tree(self._parts, optimizer))

    def load_distributed_checkpoint(
        self, path: str | Path, optimizer: Optimizer | None = None
    ) -> None:
        """Load what any world size has saved. Without `optimizer` its state is left alone.

        Raises DamagedError for bytes that are not as they were written, InputError that names the
        keys and shapes for a checkpoint of another model; nothing is changed then.
        """
        if optimizer is not None:
            self._check_params(optimizer)
        sharded.load_shards(path, self._parts, optimizer)

    def export_consolidated(self, path: str | Path) -> None:
        """One file of the whole weights, for a plain model: `load_state_dict(torch.load(path))`.

        Rank 0 writes it whole or not at all and holds all weights in host memory meanwhile; the
        GPUs gather one parameter at a time. An export that was there is replaced.
        """
        weights = sharded.full_weights(self._parts["model"])
        SideGroup().on_main(lambda: checkpoint_file.write(Path(path), weights))

    def _plan(self, joined: ranks.Ranks) -> ShardingPolicy:
        return sharding.plan(
            self._model,
            self._config,
            world=joined.world,
            local_world=joined.local_world,
            device_type=joined.device.type,
        )

    def _check_support(self, device: torch.device) -> None:
        if self._config.strategy != "fsdp":
            raise InputError(f"FSDPWrapper: the config's strategy is {self._config.strategy!r}")
        if self._policy is not None:
            raise InputError(
                "FSDPWrapper.setup was called already; a model can be sharded only once"
            )
        meta = [name for name, param in self._model.named_parameters() if param.is_meta]
        if meta:
            raise InputError(f"{meta[0]} is on the meta device: build the model with its weights")
        # What fully_shard asks of a CPU's streams, which do nothing, came with torch 2.7.
        if device.type == "cpu" and not hasattr(torch.cpu.Stream, "record_event"):
            raise InputError(f"FSDP on the CPU needs torch 2.7, found {torch.__version__}: use ddp")

    @property
    def _parts(self) -> dict[str, nn.Module]:
        if self._policy is None:
            raise InputError("FSDPWrapper: call setup first")
        return {"model": self._model}

    def _check_params(self, optimizer: Optimizer) -> None:
        # For what it does beside: it shards again what a forward pass has left gathered.
        sharded.shard_tree(self._parts)
        own = {id(param) for param in self._model.parameters()}
        if not all(id(param) in own for param in _params(optimizer)):
            raise InputError(_BUILT_BEFORE)


def units(model: nn.Module) -> list[nn.Module]:
    """The parts that are gathered together; none where nothing was sharded yet."""
    return [module for module in model.modules() if isinstance(module, FSDPModule)]


def _shard(model: nn.Module, policy: ShardingPolicy, device: torch.device) -> None:
    names = ("copies", "shards")[-len(policy.mesh) :]
    options: dict[str, Any] = {
        "mesh": init_device_mesh(device.type, policy.mesh, mesh_dim_names=names),
        "offload_policy": _offload(policy, device),
    }
    # Without the argument, torch resharded all but the root, whose backward pass begins at once.
    if not policy.reshard_after_forward:
        options["reshard_after_forward"] = False
    for name in policy.checkpointed:
        block = model.get_submodule(name)
        # Below FSDP's hooks, which gather once for both passes. The re-entrant kind breaks them.
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
    for unit in reversed(policy.units):
        is_root = not unit.name
        precision = MixedPrecisionPolicy(
            param_dtype=policy.param_dtype,
            reduce_dtype=policy.reduce_dtype,
            output_dtype=policy.output_dtype if is_root else None,
        )
        parts = [model.get_submodule(name) for name in unit.modules]
        fully_shard(parts[0] if len(parts) == 1 else parts, mp_policy=precision, **options)
    _cast_buffers(model, policy.buffer_dtype)


def _offload(policy: ShardingPolicy, device: torch.device) -> OffloadPolicy:
    if policy.cpu_offload:
        return CPUOffloadPolicy(pin_memory=device.type == "cuda")
    return OffloadPolicy()


def _cast_buffers(model: nn.Module, dtype: torch.dtype | None) -> None:
    """FSDP2 casts parameters and inputs; buffers it leaves as they are."""
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if dtype is not None and buffer.is_floating_point():
                setattr(module, name, buffer.to(dtype))


def _send_from_rank_0(model: nn.Module, device: torch.device) -> None:
    """FSDP, unlike DDP, would make one model out of shards of differently begun ones."""
    if dist.get_world_size() == 1:
        return
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.numel() == 0:
            continue
        data = tensor.detach().to(device).contiguous()
        # As bytes: some backends do not know all dtypes.
        dist.broadcast(data.reshape(-1).view(torch.uint8), 0)
        tensor.data.copy_(data)


def _refuse_in_optimizers(old: list[weakref.ref[nn.Parameter]]) -> None:
    """An optimizer from before would step parameters that no module holds, without a word."""

    def check(optimizer: Optimizer, *_: Any) -> None:
        old[:] = [ref for ref in old if ref() is not None]
        ids = {id(ref()) for ref in old}
        if any(id(param) in ids for param in _params(optimizer)):
            raise InputError(_BUILT_BEFORE)

    register_optimizer_step_pre_hook(check)


_BUILT_BEFORE = (
    "the optimizer holds other parameters than the sharded model, probably those from before "
    "FSDPWrapper.setup: build it after setup, from model.parameters()"
)


def _params(optimizer: Optimizer) -> Iterator[torch.Tensor]:
    return (param for group in optimizer.param_groups for param in group["params"])


def _check_stepped(model: nn.Module, optimizer: Optimizer) -> None:
    """torch makes up the state of an optimizer that has not stepped, and counts that as a step."""
    if sharded.has_state(optimizer):
        return
    grads = [(param, param.grad) for param in _params(optimizer)]
    optimizer.zero_grad(set_to_none=True)
    get_optimizer_state_dict(model, optimizer)
    has_state = sharded.has_state(optimizer)
    optimizer.state.clear()
    for param, grad in grads:
        param.grad = grad
    if has_state:
        raise InputError(
            "the optimizer has not stepped yet, so it has no state to save: save after the first "
            "step, or without the optimizer"
        )


def _facts(policy: ShardingPolicy) -> dict[str, Any]:
    """What of the policy can change numbers."""
    names = ("param_dtype", "reduce_dtype", "buffer_dtype")
    dtypes = {name: str(dtype) for name in names if (dtype := getattr(policy, name))}
    facts = {"sharding": policy.sharding, "mesh": policy.mesh, "units": len(policy.units)}
    return facts | dtypes | {"is_recomputed": bool(policy.checkpointed)}
