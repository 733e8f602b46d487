"""All that the next start needs to go on as if nothing had happened, and how it gets back there.

    state = TrainingState(model=model, optimizer=optimizer, scheduler=scheduler, loader=loader)
    state.step += 1

Plain containers, numbers, text and tensors, so that `torch.load(weights_only=True)` takes it. Names
of weights are those of the bare model, whatever wraps it. Each rank has its own random numbers;
`Checkpointer` gathers them.

Not covered: what a script keeps outside of the parts it names.
"""

from __future__ import annotations

import random
import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training import torch_private

# --- Names of weights, with and without what wrappers put before them.
# DDP says `module.`, torch.compile `_orig_mod.`, activation checkpointing
# `_checkpoint_wrapped_module.`, and they nest in any order, also in the middle of a name where only
# a block was wrapped. A checkpoint holds the names of the bare model, and loads into any wrapping.


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
                f"{where} has {other} and {name}, which differ only in a wrapper's name: "
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


# --- Where the random numbers of this process have come to: python, numpy, torch, CUDA.
# Kept as tensors and numbers, so that `torch.load(weights_only=True)` takes them. Each rank has its
# own. Not covered: generators that a script made itself (a loader keeps its own position), and the
# state of other devices than CUDA's current one.


# python's version 3 of random.getstate: 624 words of the Mersenne twister and the place in them.
_PYTHON_VERSION = 3
_FACTOR = 1_000_003


def capture_rng() -> dict[str, Any]:
    """This process's states; numpy's where it is installed, CUDA's where it is in use."""
    version, words, gauss = random.getstate()
    found = {
        "python": {"version": version, "words": torch.tensor(words), "gauss": gauss},
        "torch": torch.get_rng_state(),
    }
    if (numpy := _numpy()) is not None:
        _, keys, place, has_gauss, cached = numpy.random.get_state()
        found["numpy"] = {
            "words": torch.tensor(keys.astype("int64")),
            "place": int(place),
            "has_gauss": int(has_gauss),
            "gauss": float(cached),
        }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = torch.cuda.get_rng_state()
    return found


def restore_rng(saved: dict[str, Any]) -> list[str]:
    """Put this process where `capture` was; what could not be restored, a sentence each."""
    python = saved["python"]
    if python["version"] != _PYTHON_VERSION:
        return [f"random numbers of python: version 3 was expected, found {python['version']}"]
    random.setstate((python["version"], tuple(python["words"].tolist()), python["gauss"]))
    torch.set_rng_state(saved["torch"].clone())
    return [*_restore_numpy(saved.get("numpy")), *_restore_cuda(saved.get("cuda"))]


def rng_for_rank(saved: Sequence[dict[str, Any]], rank: int) -> dict[str, Any] | None:
    """What a rank goes on from; None for one that was not there when it was saved.

    Ranks that all had the same state (each draws the whole batch's noise) stay the same.
    """
    if rank < len(saved):
        return saved[rank]
    first = saved[0]["torch"]
    are_same = len(saved) > 1 and all(torch.equal(first, other["torch"]) for other in saved)
    return saved[0] if are_same else None


def draw_rng_anew(saved: dict[str, Any], step: int, rank: int) -> None:
    """Seed a rank that has no state of its own: from rank 0's, the step and its rank alone."""
    seed = int(saved["torch"].to(torch.int64).sum())
    seed = ((seed * _FACTOR + step) * _FACTOR + rank) % 2**32
    random.seed(seed)
    torch.manual_seed(seed)
    if (numpy := _numpy()) is not None:
        numpy.random.seed(seed)


def _restore_numpy(saved: dict[str, Any] | None) -> list[str]:
    numpy = _numpy()
    if saved is None or numpy is None:
        # A script that never drew from numpy loses nothing, so a box without it may go on.
        return []
    words = saved["words"].numpy().astype("uint32")
    state = ("MT19937", words, saved["place"], saved["has_gauss"], saved["gauss"])
    numpy.random.set_state(state)
    return []


def _restore_cuda(saved: torch.Tensor | None) -> list[str]:
    if saved is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(saved.clone())
    return []


def _numpy() -> Any:
    """torch imports it where it is installed; where it is not, nobody has drawn from it."""
    if "numpy" in sys.modules:
        return sys.modules["numpy"]
    try:
        import numpy
    except ImportError:
        return None
    return numpy


Rng = dict[str, Any]
_SCALARS = (bool, int, float, str, bytes, type(None), torch.dtype, torch.device)
_LONGEST_PROBLEM = 400


class TrainingState:
    """The parts of one training, its `step` and `epoch`, and the `best` result so far.

    `ema` is a module (such as AveragedModel) or any object with state_dict and load_state_dict, and
    so is each of `more`; a dict among these is saved and filled in place.
    """

    def __init__(
        self,
        *,
        model: nn.Module,
        optimizer: Any = None,
        scheduler: Any = None,
        scaler: Any = None,
        ema: Any = None,
        loader: Any = None,
        **more: Any,
    ) -> None:
        named = {"optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
        named |= {"ema": ema, "loader": loader}
        self.model = model
        self.parts = {name: part for name, part in named.items() if part is not None} | more
        self.step = 0
        """Optimizer steps taken, in all epochs."""
        self.epoch = 0
        """Epochs finished."""
        self.best: dict[str, Any] | None = None
        """What best.pth holds; Checkpointer.save_best keeps it."""
        if problems := [p for name, part in self.parts.items() for p in _unfit(name, part)]:
            raise InputError(problems)

    @property
    def modules(self) -> dict[str, nn.Module]:
        """The parts whose names may have a wrapper's before them."""
        ema = self.parts.get("ema")
        return {"model": self.model} | ({"ema": ema} if isinstance(ema, nn.Module) else {})

    def state_dict(self) -> dict[str, Any]:
        """This rank's state; tensors are the live ones, not copies. No collective.

        Raises InputError that names every value that is not plain.
        """
        return {
            "step": self.step,
            "epoch": self.epoch,
            "kinds": self.kinds(),
            **{name: weights(module) for name, module in self.modules.items()},
            **self.rest(),
            "rng": [capture_rng()],
        }

    def rest(self) -> dict[str, Any]:
        """The parts that are no modules."""
        others = {name: part for name, part in self.parts.items() if name not in self.modules}
        return {
            name: plain(dict(part) if isinstance(part, dict) else part.state_dict(), name)
            for name, part in others.items()
        }

    def kinds(self) -> dict[str, str]:
        """The class of the optimizer: torch loads one's state into another without a word."""
        optimizer = self.parts.get("optimizer")
        if optimizer is not None and _is_zero(optimizer):
            optimizer = optimizer.optim
        return {} if optimizer is None else {"optimizer": type(optimizer).__name__}

    def gather(self) -> None:
        """Bring ZeRO's state to rank 0, of which each rank has a share. A collective."""
        for part in self.parts.values():
            if _is_zero(part):
                part.consolidate_state_dict(to=0)

    def load_state_dict(
        self, saved: Mapping[str, Any], *, rank: int = 0, without: Sequence[str] = ()
    ) -> list[str]:
        """Put all parts where they were; notes on what was not as it was, a sentence each.

        `without` names parts that the caller restores. Raises InputError that names each part that
        cannot be restored, and why; the training must not go on then.
        """
        problems = self._mismatches(saved, without)
        for name in ("model", *self.parts):
            if name in saved and name not in without and not problems.get(name):
                problems[name] = _tried(self._load_part, name, saved[name])
        if found := [f"{name}: {why}" for name, why in problems.items() if why]:
            raise InputError([f"{len(found)} parts cannot be restored:", *found])
        self.step, self.epoch = saved["step"], saved["epoch"]
        return self._load_rng(saved["rng"], rank)

    def _mismatches(self, saved: Mapping[str, Any], without: Sequence[str]) -> dict[str, str]:
        wanted = {"model", *self.parts} - set(without)
        problems = {name: "it is not in the checkpoint" for name in wanted if name not in saved}
        problems |= {
            name: "it was saved, and this training has none"
            for name in saved
            if name not in wanted and name not in (*_OWN, *without)
        }
        kinds, was = self.kinds(), saved.get("kinds", {})
        return problems | {
            name: f"it was {was[name]}, it is {kind}"
            for name, kind in kinds.items()
            if name in was and was[name] != kind
        }

    def _load_part(self, name: str, saved: Any) -> None:
        part = self.model if name == "model" else self.parts[name]
        if isinstance(part, nn.Module):
            load_weights(part, saved)
        elif isinstance(part, dict):
            part.clear()
            part.update(owned(saved))
        elif _is_zero(part):
            # It takes out of what it is given whatever other ranks keep.
            part.load_state_dict({**saved, "state": dict(saved["state"])})
            part.state.clear()
            _own_state(part.optim)
        elif isinstance(part, torch.optim.Optimizer):
            part.load_state_dict(saved)
            _own_state(part)
        else:
            part.load_state_dict(owned(saved))

    def _load_rng(self, saved: Sequence[Rng], rank: int) -> list[str]:
        mine = rng_for_rank(saved, rank)
        if mine is not None:
            return restore_rng(mine)
        draw_rng_anew(saved[0], self.step, rank)
        return [
            f"rank {rank} was not there when this was saved with {len(saved)} ranks: its random "
            "numbers start anew"
        ]


_OWN = ("format", "id", "step", "epoch", "kinds", "world", "identity", "history", "rng", "best")


def weights(module: nn.Module) -> dict[str, Any]:
    """A module's state dict under the bare model's names; the tensors are the live ones."""
    return bare_names(unwrapped(module).state_dict())


def load_weights(module: nn.Module, saved: Mapping[str, Any]) -> None:
    """Copy weights into a module, wrapped or not, whatever wrapped the saved one."""
    target = unwrapped(module)
    target.load_state_dict(fit_names(saved, target.state_dict()))


def plain(value: Any, where: str) -> Any:
    """The value in plain containers, numbers, text and tensors; numpy's become torch's.

    Raises InputError with the path of every value that weights_only would refuse.
    """
    problems: list[str] = []
    found = _plain(value, where, problems)
    if problems:
        raise InputError(problems)
    return found


def _plain(value: Any, where: str, problems: list[str]) -> Any:
    if type(value) in _SCALARS or isinstance(value, torch.Tensor):
        return value
    if isinstance(value, Mapping):
        return {
            _plain(key, f"{where}: the key {key!r}", problems): _plain(
                item, f"{where}.{key}", problems
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        items = [_plain(item, f"{where}.{i}", problems) for i, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    if type(value).__module__ == "numpy":
        return value.item() if value.ndim == 0 else torch.from_numpy(value.copy())
    problems.append(
        f"{where}: a {type(value).__name__} cannot be kept in a checkpoint, which holds numbers, "
        "text, tensors, and lists and dicts of them"
    )
    return None


def owned(value: Any) -> Any:
    """The same with tensors in memory of their own: a mapped one keeps its whole file on disk."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, Mapping):
        return {key: owned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(owned(item) for item in value)
    return value


def _own_state(optimizer: torch.optim.Optimizer) -> None:
    """On the CPU, load_state_dict takes the file's own mapped tensors: here they are copied."""
    for of_parameter in optimizer.state.values():
        for name, value in of_parameter.items():
            if isinstance(value, torch.Tensor) and value.device.type == "cpu":
                of_parameter[name] = value.clone()


def _is_zero(part: Any) -> bool:
    """torch's ZeroRedundancyOptimizer: each rank keeps the state of some parameters alone."""
    return isinstance(part, torch.optim.Optimizer) and hasattr(part, "consolidate_state_dict")


def _unfit(name: str, part: Any) -> list[str]:
    if name in _OWN:
        return [f"{name}: this name is taken"]
    is_fit = hasattr(part, "state_dict") and hasattr(part, "load_state_dict")
    if is_fit or isinstance(part, dict):
        return []
    return [f"{name}: expected state_dict and load_state_dict, found a {type(part).__name__}"]


def _tried(load: Any, *arguments: Any) -> str:
    """Why it did not work; empty where it did."""
    try:
        load(*arguments)
    # Each part complains in its own way.
    except Exception as error:
        return " ".join(str(error).split())[:_LONGEST_PROBLEM] or type(error).__name__
    return ""
