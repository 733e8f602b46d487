"""Where event files of a run may lie, and how a TensorBoard is started there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from boxcar.laptop.common import home
from boxcar.laptop.ssh.connection import Ssh
from boxcar.laptop.ssh.reverse_port import forward
from boxcar.laptop.tensorboard.shown import Shown
from boxcar.shared.environment import after_hook
from boxcar.shared.record import dataclass

_PROGRAM = "show_events"
# From a port of the place to one of this machine.
PortHere = Callable[[int], int]


class Place(Protocol):
    """`name` is that of the box, '' on this machine."""

    @property
    def name(self) -> str: ...

    def show(self) -> tuple[Shown, PortHere]:
        """Starts it. Raises BoxcarError for a box that cannot be reached, and OSError."""


@dataclass(frozen=True)
class Here:
    """A folder of this machine, by one of its interpreters."""

    python: str
    folder: Path
    name: str = ""

    def show(self) -> tuple[Shown, PortHere]:
        return Shown([self.python, "-c", _program(), str(self.folder)]), lambda port: port


@dataclass(frozen=True)
class OnBox:
    """A folder of a box, by the training's interpreter after the profile's hook."""

    ssh: Ssh
    hook: str
    python: str
    folder: str

    @property
    def name(self) -> str:
        return self.ssh.alias

    def show(self) -> tuple[Shown, PortHere]:
        self.ssh.run(["true"])  # its errors are sentences, and it pins the host's key
        program = [*after_hook(self.hook), self.python, "-c", _program(), self.folder]
        words, control, typed = self.ssh.own_program(program)
        return Shown(words, typed), lambda port: forward(self.name, control, port)


def pythons_here(first: str) -> list[str]:
    """Interpreters of this machine that may have TensorBoard, each once."""
    found = [first, sys.executable]
    if program := shutil.which("tensorboard"):
        found.append(str(Path(program).resolve().with_name("python")))
    return [one for one in dict.fromkeys(found) if shutil.which(one)]


def with_events(folders: Iterator[Path]) -> Path | None:
    """The first of them that has an event file, else the first that is there."""
    there = [folder for folder in folders if folder.is_dir()]
    return next(filter(_has_event, there), next(iter(there), None))


def link(folders: Mapping[str, Path], below: Path) -> None:
    """`below` gets a link to each folder, by its name; TensorBoard calls a cell by it."""
    for name, folder in folders.items():
        at = below / name
        if at.is_symlink() and at.readlink() != folder:
            at.unlink()
        with contextlib.suppress(FileExistsError):
            at.symlink_to(folder, target_is_directory=True)


def _has_event(folder: Path) -> bool:
    return any(".tfevents." in name for _, _, files in os.walk(folder) for name in files)


def _program() -> str:
    return home.training_program(_PROGRAM)
