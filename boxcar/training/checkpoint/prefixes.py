"""Names of weights, with and without what wrappers put before them.

DDP says `module.`, torch.compile `_orig_mod.`, activation checkpointing
`_checkpoint_wrapped_module.`, and they nest in any order, also in the middle of a name where only a
block was wrapped. A checkpoint holds the names of the bare model, and loads into any wrapping.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training import torch_private

# A model may have a `module` of its own, so that name is only matched.
_WRAPPERS = torch_private.WRAPPERS | {"module"}


def unwrapped(model: nn.Module) -> nn.Module:
    """The module inside DistributedDataParallel, DataParallel and torch.compile, however nested."""
    while True:
        if isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
            model = model.module
        elif inside := torch_private.inside_compiled(model):
            model = inside
        else:
            return model


def bare_names(saved: Mapping[str, Any]) -> OrderedDict[str, Any]:
    """A state dict without the names that no model gives to its own parts; tensors are shared."""
    return _renamed(saved, {name: _without(name, torch_private.WRAPPERS) for name in saved})


def fit_names(saved: Mapping[str, Any], wanted: Iterable[str]) -> OrderedDict[str, Any]:
    """`saved` under the names of `wanted`, where they are the same but for wrappers' names.

    What has no counterpart keeps its name, for load_state_dict to complain about. Raises InputError
    where two names differ only by a wrapper's, so that nobody knows which is meant.
    """
    wanted = list(wanted)
    if set(saved) == set(wanted):
        return _renamed(saved, {})
    by_core = _by_core(wanted, "the model")
    _by_core(saved, "the checkpoint")
    cores = {name: _without(name, _WRAPPERS) for name in saved}
    return _renamed(saved, {name: by_core.get(core, name) for name, core in cores.items()})


def _by_core(names: Iterable[str], where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(_without(name, _WRAPPERS), name)
        if other != name:
            raise InputError(
                f"{where} has {other} and {name}, which are the same but for a wrapper's name: "
                "load it wrapped as it was when it was saved"
            )
    return found


def _without(name: str, wrappers: frozenset[str]) -> str:
    return ".".join(part for part in name.split(".") if part not in wrappers)


def _renamed(saved: Mapping[str, Any], names: Mapping[str, str]) -> OrderedDict[str, Any]:
    found = OrderedDict((names.get(name, name), value) for name, value in saved.items())
    # load_state_dict reads the version of each module's format from here.
    versions = torch_private.versions(saved)
    if versions is not None:
        cores = {name: _without(name, torch_private.WRAPPERS) for name in versions} if names else {}
        renamed = OrderedDict((cores.get(name, name), value) for name, value in versions.items())
        torch_private.with_versions(found, renamed)
    return found
