"""The Python on this machine that has the training's packages.

Who installs Boxcar by itself (pipx, uv) trains from another environment: the one that is active in
the shell. Where that one has no torch and Boxcar's own has, as after `pipx inject`, it is Boxcar's.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

# What activating an environment sets.
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")


def for_training() -> str:
    """An absolute path, not resolved: the link in a virtual environment finds its packages."""
    other = active(os.environ)
    has_torch = importlib.util.find_spec("torch") is not None
    return other if other and (_has_torch(other) or not has_torch) else sys.executable


def _has_torch(python: str) -> bool:
    """Whether it lies in that environment; asking it would cost each verb a start of Python."""
    return any(Path(python).parents[1].glob("lib/python3*/site-packages/torch"))


def active(environ: Mapping[str, str]) -> str | None:
    """The Python of the environment that is active, where there is one."""
    named = (Path(environ[name], "bin", "python") for name in _ACTIVE if environ.get(name))
    return next((str(path) for path in named if path.is_absolute() and path.is_file()), None)
