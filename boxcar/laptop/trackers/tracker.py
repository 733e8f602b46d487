"""A tracker as an export sees it, and the table of those that there are."""

from __future__ import annotations

import importlib
import importlib.util
import shlex
from pathlib import Path
from typing import Protocol

from boxcar.laptop.common import home
from boxcar.laptop.common.near import no_choice
from boxcar.laptop.trackers.exported_cell import ExportedCell
from boxcar.shared.errors import InputError
from boxcar.shared.sentence import _


class Tracker(Protocol):
    """Writes cells into one folder. Each module `to_NAME` is one."""

    def write(self, folder: Path, cell: ExportedCell) -> str:
        """Put the whole cell there, in the place of what is there of it; where it lies now, below
        the folder.
        """


# What a person types to see it, or to send it on. Of each, what is imported and what is installed
# have its name.
NEXT = {
    "tensorboard": "tensorboard --logdir {}",
    "wandb": "wandb sync {}/wandb/offline-run-*",
    "mlflow": "mlflow ui --backend-store-uri sqlite:///{}/mlflow.db",
    "swanlab": "swanlab sync {}/swanlog/run-*",
}


def check_name(name: str) -> None:
    """Raises InputError for one that does not exist."""
    if name not in NEXT:
        raise InputError(no_choice("--to", NEXT, name))


def load(name: str) -> Tracker:
    """Raises InputError, with what to type, where its library is not here."""
    if not _is_installed(name):
        raise InputError(
            _(
                "{name} is not installed where Boxcar runs. Type: {install}",
                name=name,
                install=home.install_line(name),
            )
        )
    module: Tracker = importlib.import_module(f"boxcar.laptop.trackers.to_{name}")
    return module


def _is_installed(name: str) -> bool:
    """A folder of logs that is called wandb looks like a package without a file of its own."""
    found = importlib.util.find_spec(name)
    return found is not None and found.origin is not None


def next_step(name: str, folder: Path) -> str:
    return NEXT[name].format(shlex.quote(str(folder.absolute())))
