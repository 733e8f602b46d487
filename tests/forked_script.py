"""`python train.py ...` as a process that is forked from one that has torch loaded, see forked.py.

Of a start of a script that uses torch, all but a tenth is the import of torch. What is about the
start itself, such as torchrun's, is started.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from forked import Forked, serve

LOADED = ("torch", "torch.nn", "torch.utils.data", "boxcar.training", "yaml")


class ForkedScript(Forked[str]):
    """As `Popen([sys.executable, SCRIPT, *words], cwd=..., env=..., text=True)`."""

    SERVER = (sys.executable, __file__)


def _load_all() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is loaded
    for name in LOADED:
        importlib.import_module(name)


def become(words: Sequence[str]) -> None:
    script = words[1]
    sys.argv = list(words[1:])
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    _load_all()
    serve(become)
