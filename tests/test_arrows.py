"""Which house may import which, read from every file of boxcar/ and onbox/.

shared stands on the standard library alone; onbox and training stand on shared; the laptop ships
onbox and never imports it; nothing imports the door. The rooms inside: test_rooms.py.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sources
from sources import ROOT
from waiting import LIMIT_S

FILES = sources.sources(*sources.HOUSES)


@dataclass(frozen=True)
class Room:
    """`may`: all that its files may import besides the standard library. Never stands above it."""

    folder: str
    may: tuple[str, ...] | None = None
    never: tuple[str, ...] = ("tasks", "onbox")


# The first whose folder holds a file is the file's room.
ROOMS = (
    Room("boxcar/shared", may=("boxcar.shared",)),
    Room(
        "boxcar/training",
        may=(
            *("boxcar.shared", "boxcar.training"),
            *("torch", "safetensors", "numpy", "fsspec"),  # which comes with torch
            # What a result was written with, imported where one is loaded.
            *("joblib", "lz4"),
        ),
    ),
    Room(
        "onbox",
        may=(
            *("boxcar.shared", "onbox"),
            *("watchdog", "requests", "urllib3", "standardwebhooks", "pynvml"),
        ),
        never=("tasks",),
    ),
    # The laptop, and the package's own door beside it.
    Room("boxcar", never=("tasks", "onbox", "torch", "boxcar.training")),
)


def violations(file: str, source: str) -> list[str]:
    """`file:line: imports x` for every import that an arrow forbids."""
    room = next(room for room in ROOMS if file.startswith(f"{room.folder}/"))
    return [
        f"{file}:{line}: imports {name}"
        for line, name in imports(file, source)
        if not is_allowed(room, name)
    ]


def is_allowed(room: Room, name: str) -> bool:
    if is_in(name, room.never):
        return False
    is_standard = name.partition(".")[0] in sys.stdlib_module_names
    return room.may is None or is_standard or is_in(name, room.may)


def is_in(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def imports(file: str, source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of whatever is imported anywhere in a file, late imports too."""
    tree = ast.parse(source, file)
    for node in sources.imports(tree):
        package = imported_package(file, node) + "." if isinstance(node, ast.ImportFrom) else ""
        yield from ((node.lineno, f"{package}{alias.name}") for alias in node.names)
    if any(call in source for call in IMPORTING):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (name := imported_by_call(node)):
                yield node.lineno, name


IMPORTING = ("__import__", "import_module", "run_module")


def imported_package(file: str, node: ast.ImportFrom) -> str:
    """The package of a `from`, where dots stand for the file's own and those above it."""
    if not node.level:
        return node.module or ""
    above = Path(file).parts[: -node.level]
    return ".".join([*above, *([node.module] if node.module else [])])


def imported_by_call(node: ast.Call) -> str | None:
    """The module that a call imports; a name that is known only when it runs cannot be judged."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else None
    called = node.func.id if isinstance(node.func, ast.Name) else called
    if called not in IMPORTING or not node.args:
        return None
    return str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else None


def test_no_file_imports_against_the_arrows():
    assert [one for file, source in FILES.items() for one in violations(file, source)] == []


def test_every_room_was_looked_into():
    for room in ("boxcar/shared/", "boxcar/laptop/", "boxcar/training/", "onbox/"):
        assert any(file.startswith(room) for file in FILES), f"no file of {room} was looked at"


PLANTED = [
    ("boxcar/shared/x.py", "import requests"),
    ("boxcar/shared/x.py", "import boxcar"),
    ("boxcar/shared/x.py", "from boxcar import laptop"),
    ("boxcar/shared/x.py", "from boxcar.laptop.common.show import say"),
    ("boxcar/shared/x.py", "from .. import laptop"),
    ("boxcar/shared/deep/x.py", "from ...laptop import show"),
    ("boxcar/shared/x.py", "import boxcar.training"),
    ("boxcar/shared/x.py", "import json, torch"),
    ("onbox/x.py", "import torch"),
    ("onbox/x.py", "import numpy as np"),
    ("onbox/x.py", "from boxcar.laptop.common import show"),
    ("onbox/x.py", "from boxcar.training import progress"),
    ("onbox/x.py", "import yaml"),
    ("onbox/x.py", "import tasks"),
    ("boxcar/laptop/x.py", "import onbox"),
    ("boxcar/laptop/x.py", "from onbox.agent.agent import run"),
    ("boxcar/laptop/x.py", "import torch.nn.functional as F"),
    ("boxcar/laptop/x.py", "from boxcar import training"),
    ("boxcar/laptop/x.py", "from ..training import load_check"),
    ("boxcar/laptop/x.py", "from tasks import namespace"),
    ("boxcar/cli.py", "import tasks"),
    ("boxcar/__init__.py", "import torch"),
    ("boxcar/training/x.py", "import onbox"),
    ("boxcar/training/x.py", "from boxcar.laptop.verbs import verify"),
    ("boxcar/training/x.py", "import pydantic"),
    ("onbox/x.py", "m = __import__('torch')"),
]


@pytest.mark.parametrize(("file", "source"), PLANTED)
def test_a_planted_violation_is_found(file, source):
    [found] = violations(file, source)
    assert found.startswith(f"{file}:1: imports ")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def late():\n    if True:\n        import torch", 3),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", 2),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch", 3),
        ("import importlib\nm = importlib.import_module('torch')", 2),
        ("m = (\n    __import__('torch')\n)", 2),
    ],
)
def test_a_late_import_is_found_in_its_line(source, line):
    assert violations("boxcar/laptop/x.py", source) == [f"boxcar/laptop/x.py:{line}: imports torch"]


KEPT = [
    ("boxcar/shared/x.py", "import os.path, json\nfrom boxcar.shared import codec"),
    ("boxcar/shared/x.py", "from . import codec\nfrom .errors import DamagedError"),
    ("boxcar/training/x.py", "import torch, numpy\nfrom safetensors.torch import load_file"),
    ("boxcar/laptop/x.py", "import rich, yaml, invoke.tasks\nfrom invoke import tasks"),
    ("boxcar/laptop/x.py", "from . import show\nfrom boxcar import __version__"),
    ("boxcar/laptop/x.py", "import torchvision_is_another_name"),
    ("boxcar/laptop/x.py", "from importlib.util import find_spec; find_spec('torch')"),
    ("onbox/x.py", "def late():\n    import requests\n    from watchdog.observers import Observer"),
]


@pytest.mark.parametrize(("file", "source"), KEPT)
def test_what_the_arrows_allow_is_not_found(file, source):
    assert violations(file, source) == []


def modules(folder: str) -> list[str]:
    files = [file for file in FILES if file.startswith(f"{folder}/")]
    names = [file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in files]
    assert names, f"{folder} has no modules"
    return names


IMPORT = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@functools.cache
def loaded_by(folder: str, *flags: str) -> set[str]:
    """The top names in sys.modules of a fresh interpreter that imported all modules of a folder."""
    command = [sys.executable, *flags, "-c", IMPORT, str(ROOT), *modules(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_formats_import_where_nothing_is_installed():
    # -S: without site-packages, as on a box.
    loaded = loaded_by("boxcar/shared", "-I", "-S")
    assert "boxcar" in loaded and not loaded & {"torch", "onbox"}


@pytest.mark.parametrize("folder", ["onbox", "boxcar/laptop"])
def test_importing_every_module_does_not_import_torch(folder):
    assert not loaded_by(folder) & {"torch", "numpy", "safetensors"}


def test_the_agent_needs_nothing_of_the_laptops_libraries():
    assert not loaded_by("onbox") & {"rich", "invoke", "pydantic", "yaml", "jinja2"}
