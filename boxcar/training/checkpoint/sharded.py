"""Checkpoints of which each rank writes its own part: `checkpoints/step_00000120/`.

One folder of torch.distributed.checkpoint each (dcp_folder.py), which has its name only when every
part of it is on the disk. The newest folder is the latest: there is no pointer that could say
anything else. Model, optimizer and EMA are sharded; all the rest is one entry, as text, and so is
an optimizer that has not stepped. It loads on any number of ranks. All ranks must see one folder.

`resume: checkpoints/step_*/` in job.yaml has the newest one mirrored.
"""

from __future__ import annotations

import base64
import contextlib
import io
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint import state_dict as dcp_state
from torch.optim import Optimizer

from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError
from boxcar.training import stall
from boxcar.training.checkpoint import (
    checkpoint_file,
    checkpoint_folder,
    dcp_folder,
    training_state,
)
from boxcar.training.checkpoint.behind import Behind
from boxcar.training.checkpoint.training_state import TrainingState
from boxcar.training.ranks.side_group import SideGroup
from boxcar.training.reporting.say import say

# --- The tensors of sharded modules and their optimizer, as trees for dcp_folder.py, and back.
# Names are the bare model's, shared by every world size. All ranks call each function together.
# The trap: torch makes up the state of an optimizer that has not stepped, and counts that as a
# step. So a tree to save has an optimizer only where `has_state`.


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


_REST = "rest"


class Sharded:
    """The store of a Checkpointer whose checkpoints are folders."""

    def __init__(self, out: Path, folder: Path, state: TrainingState, side: SideGroup) -> None:
        self._out, self._folder, self._state, self._side = out, folder, state, side
        self._saving: Future[float] | None = None
        # Rank 0's alone: it asks nobody, so that the ranks may leave before it is through.
        self._behind = Behind("boxcar-tidy")

    def path(self, name: str) -> Path:
        """Where a checkpoint lies."""
        return self._folder / name

    def names(self) -> list[str]:
        """What is there, newest first. Rank 0."""
        return checkpoint_folder.newest_first([path.name for path in self._folder.glob("step_*")])

    def wrong_kind(self) -> str | None:
        """Why these are not for this store. Rank 0."""
        files = [path.stem for path in self._folder.glob("step_*.pth")]
        if not checkpoint_folder.newest_first(files) and not (self._out / "latest.pth").exists():
            return None
        return f"{self._out}: holds checkpoints of one file each: is_sharded=True cannot load them"

    def remove_unfinished(self) -> None:
        """Remove what killed saves left. Rank 0."""
        atomic.remove_unfinished(self._folder)
        dcp_folder.remove_unfinished(self._folder)
        for path in self._folder.glob(".*.deleting"):
            shutil.rmtree(path)

    def adopt(self) -> bool:
        """Nothing is ever put beside the folders."""
        return False

    def check(self, name: str) -> str:
        """Raise DamagedError unless every file has its size; its id. Rank 0.

        Loading compares their bytes.
        """
        if not dcp_folder.is_complete(self.path(name)):
            dcp_folder.read_complete(self.path(name))
            raise DamagedError(f"{self.path(name)}: a file is missing or has another size")
        return digest.of_file(self.path(name) / dcp_folder.COMPLETE)

    def sees(self, name: str, number: str) -> bool:
        """Whether this rank sees what rank 0 has checked. Each rank by itself."""
        try:
            return self.check(name) == number
        except (DamagedError, OSError):
            return False

    def refuse(self, name: str, reason: str) -> None:
        """Set a checkpoint aside, and say why. Rank 0."""
        aside = checkpoint_file.set_aside(self.path(name))
        say(f"{reason}; not loaded, kept as {aside.name}")

    def head(self, name: str) -> dict[str, Any]:
        """All but the tensors of model, optimizer and EMA; their files are checked. All ranks."""
        rest = {_REST: ""}
        dcp_folder.load(self.path(name), rest)
        content = io.BytesIO(base64.b64decode(rest[_REST]))
        head: dict[str, Any] = torch.load(content, weights_only=True)
        return head

    def restore(self, name: str, content: dict[str, Any], rank: int) -> list[str]:
        """Put the state where it was; its notes. All ranks, after `head`."""
        modules, optimizer = self._state.modules, self._state.parts.get("optimizer")
        if content.get("optimizer") is not None:
            optimizer = None  # it had not stepped, and is part of the rest
        load_shards(self.path(name), modules, optimizer, is_checked=True)
        sharded = [*modules, *(["optimizer"] if optimizer is not None else [])]
        return self._state.load_state_dict(content, rank=rank, without=sharded)

    def save(self, name: str, head: dict[str, Any], tidy: Callable[[], None]) -> Callable[[], None]:
        """Write it; what begins the rest, `tidy` in a thread of rank 0. All ranks."""
        dcp_folder.save(self.path(name), self._content(head))
        return lambda: self._begin_on_main(name, tidy)

    def save_async(
        self, name: str, head: dict[str, Any], tidy: Callable[[], None]
    ) -> Callable[[], None]:
        """Copy it to CPU memory; what begins to write it, in a thread. All ranks."""
        begin = dcp_folder.copy_and_save(self.path(name), self._content(head))

        def write() -> None:
            saving = self._saving = begin()

            def after() -> None:
                saving.result()
                tidy()

            self._begin_on_main(name, after)

        return write

    def wait(self) -> float:
        """Until rank 0 is through with the last save: the seconds that it took; its error is raised
        on all ranks.
        """
        if self._saving is not None:
            with stall.patient():
                futures.wait([self._saving])
        return self._side.on_main(self._behind.joined)

    def verify(self, name: str) -> None:
        """Read all of it back from the disk; DamagedError. Rank 0."""
        dcp_folder.check_on_disk(self.path(name))

    def publish(self, name: str) -> None:
        """The newest folder is the latest."""

    def delete(self, name: str) -> None:
        """Under its name it is whole until it is gone."""
        doomed = self._folder / f".{name}.deleting"
        self.path(name).rename(doomed)
        shutil.rmtree(doomed)

    def _begin_on_main(self, name: str, work: Callable[[], None]) -> None:
        if self._side.rank == 0:
            self._behind.begin(name, work)

    @property
    def _stepped(self) -> Any:
        """The optimizer, where it has tensors to shard; else it is part of the rest."""
        optimizer = self._state.parts.get("optimizer")
        return optimizer if optimizer is not None and has_state(optimizer) else None

    def _content(self, head: dict[str, Any]) -> dict[str, Any]:
        """What is sharded, and the rest."""
        tree = shard_tree(self._state.modules, self._stepped)
        return tree | {_REST: self._rest(head)}

    def _rest(self, head: dict[str, Any]) -> str:
        content = self._state.rest()
        if self._stepped is not None:
            content["optimizer"] = None
        numbers = {"step": self._state.step, "epoch": self._state.epoch}
        # By name alone, so that a part that is missing on either side is noticed.
        parts = dict.fromkeys(self._state.modules)
        file = io.BytesIO()
        torch.save(content | parts | numbers | {"kinds": self._state.kinds()} | head, file)
        return base64.b64encode(file.getvalue()).decode()
