"""The environment in which a tracker's library is used: nothing is sent, and nothing of the
person's own settings for it counts. What it prints goes to `notes`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TextIO

_THEIRS = ("WANDB_", "SWANLAB_", "MLFLOW_")
_OURS = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "WANDB_ERROR_REPORTING": "false",
    "SWANLAB_MODE": "offline",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "DO_NOT_TRACK": "true",
}


@contextlib.contextmanager
def offline(notes: TextIO) -> Iterator[None]:
    """Put back at its end."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(_THEIRS)]:
        del os.environ[name]
    os.environ.update(_OURS)
    try:
        with contextlib.redirect_stdout(notes):
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)
