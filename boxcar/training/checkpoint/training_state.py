"""All that the next start needs to go on as if nothing had happened, and how it gets back there.

    state = TrainingState(model=model, optimizer=optimizer, scheduler=scheduler, loader=loader)
    state.step += 1

Plain containers, numbers, text and tensors, so that `torch.load(weights_only=True)` takes it. Names
of weights are those of the bare model, whatever wraps it. Each rank has its own random numbers;
`Checkpointer` gathers them.

Not covered: what a script keeps outside of the parts it names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training.checkpoint import prefixes, rng_state

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
            "rng": [rng_state.capture_rng()],
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
        return {} if optimizer is None else {"optimizer": type(optimizer).__name__}

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
        elif isinstance(part, torch.optim.Optimizer):
            part.load_state_dict(saved)
            _own_state(part)
        else:
            part.load_state_dict(owned(saved))

    def _load_rng(self, saved: Sequence[Rng], rank: int) -> list[str]:
        mine = rng_state.rng_for_rank(saved, rank)
        if mine is not None:
            return rng_state.restore_rng(mine)
        rng_state.draw_rng_anew(saved[0], self.step, rank)
        return [
            f"rank {rank} was not there when this was saved with {len(saved)} ranks: its random "
            "numbers start anew"
        ]


_OWN = ("format", "id", "step", "epoch", "kinds", "world", "identity", "history", "rng", "best")


def weights(module: nn.Module) -> dict[str, Any]:
    """A module's state dict under the bare model's names; the tensors are the live ones."""
    return prefixes.bare_names(prefixes.unwrapped(module).state_dict())


def load_weights(module: nn.Module, saved: Mapping[str, Any]) -> None:
    """Copy weights into a module, wrapped or not, whatever wrapped the saved one."""
    target = prefixes.unwrapped(module)
    target.load_state_dict(prefixes.fit_names(saved, target.state_dict()))


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
