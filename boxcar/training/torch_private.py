"""All that this product uses of torch beyond its public names, each behind a function of ours.

Such a name may go with any release. tests/training/test_torch_private.py says which exist in the
oldest and the newest torch that is supported, and keeps every other file away from them.

Importing this imports no torch: a script that only reports its progress needs none.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist
    from torch import nn

_COMPILED = "_orig_mod"
# No model gives these names to a part of its own.
WRAPPERS = frozenset({_COMPILED, "_checkpoint_wrapped_module", "_fsdp_wrapped_module"})
"""What torch.compile, activation checkpointing and FSDP put into the names of weights."""

BACKWARD = ("torch.autograd", "torch._tensor")
"""The modules whose frames lie between a script's line and the backward pass in C++."""

COMPILER = "torch._dynamo"
"""The module that torch.compile imports at its first use, which takes a second."""

LAYOUT = ("torch.serialization", "_get_layout")
"""What a tensor's layout is pickled as."""

METADATA_NAMES = (
    ("torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING"),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    LAYOUT,
)
"""What a sharded checkpoint's `.metadata` names besides public classes."""


# --- process groups


def groups() -> list[weakref.ref[dist.ProcessGroup]]:
    """Every process group of this process."""
    from torch.distributed import distributed_c10d

    return [weakref.ref(group) for group in distributed_c10d._world.pg_map]


def let_go_of(destroyed: Iterable[weakref.ref[dist.ProcessGroup]]) -> None:
    """Take destroyed groups from whatever still holds them.

    Gloo's threads live as long as anybody holds the group, and abort an interpreter that ends.
    """
    from torch.distributed.device_mesh import DeviceMesh

    for mesh in [held for held in gc.get_objects() if type(held) is DeviceMesh]:
        getattr(mesh, "_pg_registry", {}).clear()
    for group in destroyed:
        _take_from_holders(group)


def _take_from_holders(group: weakref.ref[dist.ProcessGroup]) -> None:
    """From the attributes of DDP, of its compiled copies, and of FSDP.

    A model lies in circles, so it may be garbage by now and still hold it; looking for the holders
    is much cheaper than collecting garbage.
    """
    import torch.distributed as dist

    kinds = (dist.ProcessGroup, dist.Reducer, dist.Logger)
    for holder in gc.get_referrers(group()) if group() is not None else []:
        own = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
        for name in [name for name, value in own.items() if isinstance(value, kinds)]:
            own[name] = None


def collectives(*, with_stacks: bool) -> bytes | None:
    """The flight recorder's last collectives as a pickle; None where there is no recorder.

    NCCL has one in all versions, gloo since torch 2.8, which has another name for it.
    """
    native = sys.modules.get("torch._C._distributed_c10d")
    dump = getattr(native, "_dump_fr_trace", None) or getattr(native, "_dump_nccl_trace", None)
    return dump(includeStackTraces=with_stacks) if dump else None


def spare_ddp_the_log_of_its_group() -> None:
    """DDP, from now on, writes nothing of its process group into its log as it is built.

    For that log DDP takes whatever calls itself gloo for gloo, also the group around it that
    TORCH_DISTRIBUTED_DEBUG=DETAIL puts there, and reads beyond its end. Whether that is a SIGSEGV
    is chance; it is in torch 2.13 on the CPU. A second call does nothing.
    """
    import torch.distributed as dist

    class Logger(dist.Logger):
        def set_construction_data_and_log(self, *data: Any) -> None:
            """What DDP calls at the end of its construction."""

    if dist.Logger.__module__ != __name__:
        setattr(dist, "Logger", Logger)  # noqa: B010  (mypy would not have a class assigned)


# --- optimizers


def takes_step_unless(optimizer: torch.optim.Optimizer) -> bool:
    """Whether `step_unless` may be asked of it: torch's own fused Adam and AdamW, on one GPU.

    What is made of them may do more in a step than they do; a fused SGD keeps a momentum that was
    never written where its first step is left out; and a flag on its way to another device is read
    too early there.
    """
    from torch import optim

    groups = optimizer.param_groups
    devices = {p.device for group in groups for p in group["params"]}
    is_fused = all(group.get("fused") for group in groups)
    return type(optimizer) in (optim.Adam, optim.AdamW) and is_fused and len(devices) == 1


def step_unless(is_bad: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    """A step that the device leaves out by itself, its count of steps too, where `is_bad` [], a
    truth on that device, says so: what GradScaler asks of a fused optimizer. Nobody waits."""
    asked: Any = optimizer
    asked.grad_scale, asked.found_inf = None, is_bad.float()
    try:
        optimizer.step()
    finally:
        del asked.grad_scale, asked.found_inf


# --- modules and their weights


def fsdp2() -> tuple[Any, ...]:
    """CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy and fully_shard, which are
    public since torch 2.6."""
    from torch.distributed import fsdp as home

    if not hasattr(home, "fully_shard"):
        from torch.distributed._composable import fsdp as home  # type: ignore[no-redef]
    names = (
        *("CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy"),
        "fully_shard",
    )
    return tuple(getattr(home, name) for name in names)


def is_batch_norm(module: nn.Module) -> bool:
    """Whether it normalises by the batch, in any number of dimensions, synchronised or not."""
    from torch.nn.modules.batchnorm import _BatchNorm

    return isinstance(module, _BatchNorm)


def inside_compiled(model: nn.Module) -> nn.Module | None:
    """The module that `torch.compile(model)` wrapped; None where this is no such wrapper."""
    from torch import nn

    inside = getattr(model, _COMPILED, None)
    return inside if isinstance(inside, nn.Module) else None


def replace_call(model: nn.Module, guarded: Callable[[Callable[..., Any]], Any]) -> None:
    """From now on `model(...)` calls `guarded(its own call)`; a copy of the model forgets it."""
    model._compiled_call_impl = guarded(model._call_impl)


def compiler_error() -> type[Exception]:
    """What torch.compile raises when it cannot compile. Imports the compiler."""
    from torch._dynamo.exc import TorchDynamoException

    return TorchDynamoException


def versions(state_dict: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The version of each module's format, from which load_state_dict reads it."""
    return getattr(state_dict, "_metadata", None)


def with_versions(state_dict: Any, of_modules: Mapping[str, Any]) -> Any:
    """The same state dict, with the versions of its modules' formats."""
    state_dict._metadata = of_modules
    return state_dict


def sparse_values(tensor: torch.Tensor) -> torch.Tensor:
    """What a COO tensor stores; `values()` refuses one that is not coalesced."""
    return tensor._values()


def harmless_globals() -> set[str]:
    """The names that `torch.load(weights_only=True)` takes as they are."""
    from torch._weights_only_unpickler import _get_allowed_globals

    return set(_get_allowed_globals())


# --- loaders


@contextlib.contextmanager
def no_worker_info() -> Iterator[None]:
    """Inside, `get_worker_info()` is None, as in the main process.

    default_collate asks it whether to build a batch in shared memory, and streams whether to give
    only a part of themselves.
    """
    from torch.utils.data._utils import worker

    info = worker._worker_info
    worker._worker_info = None
    try:
        yield
    finally:
        worker._worker_info = info


def end_workers(iterator: Any) -> None:
    """End the workers of a DataLoader's iterator; a loop that holds it would keep them alive."""
    if hasattr(iterator, "_shutdown_workers"):
        iterator._shutdown_workers()
