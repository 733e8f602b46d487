"""The Python on this machine that has the training's packages.

Who installs Boxcar by itself (pipx, uv) trains from another environment: the one that is active in
the shell. Where that one has no torch and Boxcar's own has, as after `pipx inject`, it is Boxcar's.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from boxcar.laptop.common import run_program
from boxcar.shared.environment import clean_environment

# What activating an environment sets.
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
_ASKS = (
    "import importlib.util, sys; "
    "print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name) is None])"
)
_ASK_S = 20.0


def for_training() -> str:
    """An absolute path, not resolved: the link in a virtual environment finds its packages."""
    other = active_python(os.environ)
    has_torch = importlib.util.find_spec("torch") is not None
    return other if other and (not has_torch or _has_torch(other)) else sys.executable


@functools.cache
def _has_torch(python: str) -> bool:
    """Whether it lies in that environment, or comes there from elsewhere (a .pth file, the system's
    packages), which only that Python knows: to ask it costs a start of Python.
    """
    if any(Path(python).parents[1].glob("lib/python3*/site-packages/torch")):
        return True
    return not missing_packages(python, ("torch",))


def missing_packages(python: str, names: Sequence[str]) -> list[str]:
    """Which of these packages an interpreter has not; all of them where it cannot be asked."""
    if python == sys.executable:
        return [name for name in names if importlib.util.find_spec(name) is None]
    try:
        # Not in the project's folder, where a folder may be called torch.
        words, kept = [python, "-c", _ASKS, *names], clean_environment(os.environ)
        asked = run_program.run(words, b"", _ASK_S, cwd=Path("/"), environment=kept)
    except (OSError, subprocess.TimeoutExpired, run_program.TooMuchSaid):
        return list(names)
    return asked.stdout.decode().split() if asked.returncode == 0 else list(names)


def active_python(environ: Mapping[str, str]) -> str | None:
    """The Python of the environment that is active, where there is one."""
    named = (Path(environ[name], "bin", "python") for name in _ACTIVE if environ.get(name))
    return next((str(path) for path in named if path.is_absolute() and path.is_file()), None)
