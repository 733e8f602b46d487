"""What to type for a library that is missing where Boxcar runs."""

from __future__ import annotations

import importlib.util
import sys


def has_pip() -> bool:
    """An environment of pipx has no pip of its own."""
    return importlib.util.find_spec("pip") is not None


def install_line(library: str) -> str:
    if has_pip():
        return f"{sys.executable} -m pip install {library}"
    return f"pipx inject boxcar-run {library}"
