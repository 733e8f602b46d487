"""Boxcar: run a queue of training cells on rented boxes and lose none of their results.

In a notebook, `boxcar.runs()` and `boxcar.run("NAME")` read what was launched (boxcar/notebook.py).
"""

import importlib
from typing import Any

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    # Late: the agent, a train script and the program itself need none of it.
    if name in ("runs", "run"):
        return getattr(importlib.import_module("boxcar.notebook"), name)
    raise AttributeError(f"module 'boxcar' has no attribute {name!r}")
