"""The tensors of sharded modules and their optimizer, as trees for dcp_folder.py, and back.

Names are the bare model's, shared by every world size. All ranks call each function together.

The trap: torch makes up the state of an optimizer that has not stepped, and counts that as a step.
So a tree to save has an optimizer only where `has_state`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import nn
from torch.distributed.checkpoint import state_dict as dcp_state
from torch.optim import Optimizer

from boxcar.training.checkpoint import dcp_folder, training_state


def has_state(optimizer: Optimizer) -> bool:
    """Whether it holds anything of its own; what has none is its param_groups alone."""
    return bool(optimizer.state)


def shard_tree(
    modules: Mapping[str, nn.Module], optimizer: Optimizer | None = None
) -> dict[str, Any]:
    """Each rank's own tensors, the live ones. `optimizer` is that of `modules["model"]`."""
    # The modules first: that also shards again what a forward pass has left gathered.
    found: dict[str, Any] = {
        name: dcp_state.get_model_state_dict(training_state.unwrapped(module))
        for name, module in modules.items()
    }
    if optimizer is not None:
        model = training_state.unwrapped(modules["model"])
        found["optimizer"] = dcp_state.get_optimizer_state_dict(model, optimizer)
    return found


def load_shards(
    folder: str | Path,
    modules: Mapping[str, nn.Module],
    optimizer: Optimizer | None = None,
    *,
    is_checked: bool = False,
) -> None:
    """Put back what was saved of such a tree; see dcp_folder.load. Nothing changes if it fails."""
    with _clean_again(optimizer):
        found = shard_tree(modules, optimizer)
        dcp_folder.load(folder, found, is_checked=is_checked)
    for name, module in modules.items():
        dcp_state.set_model_state_dict(training_state.unwrapped(module), found[name])
    if optimizer is not None:
        model = training_state.unwrapped(modules["model"])
        dcp_state.set_optimizer_state_dict(model, optimizer, found["optimizer"])


def full_weights(module: nn.Module) -> dict[str, Any]:
    """A sharded module's whole weights in rank 0's CPU memory, {} on the others."""
    options = dcp_state.StateDictOptions(full_state_dict=True, cpu_offload=True)
    return dcp_state.get_model_state_dict(training_state.unwrapped(module), options=options)


@contextlib.contextmanager
def _clean_again(optimizer: Optimizer | None) -> Iterator[None]:
    """What torch makes up to load into goes again where loading fails.

    Gradients would keep torch from making it up, and what is loaded has no use for them.
    """
    if optimizer is None or has_state(optimizer):
        yield
        return
    optimizer.zero_grad(set_to_none=True)
    try:
        yield
    except BaseException:
        optimizer.state.clear()
        raise
