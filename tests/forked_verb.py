"""`boxcar` as a process that is forked from one that has its modules loaded, see forked.py. What a
local box answers it, is forked too.

A test that is about the program itself runs tiny_project.BOXCAR.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence

import forked_answer
from forked import Forked, serve

# What the modules import only where it is needed, as most verbs here need it.
_LATE = ("jinja2", "pathspec", "rich.progress", "rich.table")


class ForkedVerb(Forked[str]):
    """As `Popen([BOXCAR, *words], cwd=..., env=..., text=True)`."""

    SERVER = (sys.executable, __file__)


def _load_all() -> None:
    import boxcar.laptop

    for module in pkgutil.walk_packages(boxcar.laptop.__path__, "boxcar.laptop."):
        importlib.import_module(module.name)
    for name in ("boxcar.cli", *_LATE):
        importlib.import_module(name)
    archives = importlib.import_module("boxcar.laptop.release.archives")
    archives.build_onbox(), archives.build_training()
    forked_answer.kind()
    importlib.import_module("boxcar.laptop.boxes.local").subprocess = forked_answer


def _become(words: Sequence[str]) -> None:
    sys.argv = list(words)
    sys.stdout.reconfigure(line_buffering=False)
    from boxcar.cli import program

    program.run()


if __name__ == "__main__":
    _load_all()
    serve(_become)
