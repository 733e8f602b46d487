"""What a cell changed outside of its {out}: the independence of cells, measured.

By the notes of an audit hook in every Python process of the cell (recorder.py), which needs no
rights. Not seen: what C and C++ libraries and other programs write.
"""

from __future__ import annotations

import json
import os
import pkgutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from boxcar.shared.sentence import mark
from boxcar.training.rehearse import recorder

_CACHES = (".cache", ".triton", ".nv", ".config/matplotlib", ".config/wandb", ".torch")
_OF_TEMP = ("torchinductor_", "torchelastic_", "torch_compile", "pymp-", "matplotlib-")
# What the hooks note of a path.
WHAT = (
    mark("made"),
    mark("removed"),
    mark("moved away"),
    mark("written"),
    mark("temporary"),
)


@dataclass(frozen=True)
class Outside:
    """One path. `by`: the line of code, where it is known. `harmless`: why it does not count."""

    path: str
    what: str
    by: str = ""
    harmless: str = ""


@dataclass(frozen=True)
class Places:
    """Where this machine keeps what is no result of anybody."""

    home: str
    temp: str
    caches: tuple[str, ...] = ()


def places(environ: Mapping[str, str]) -> Places:
    named = ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "MPLCONFIGDIR")
    temp = os.path.realpath(environ.get("TMPDIR") or tempfile.gettempdir())
    caches = tuple(os.path.realpath(environ[name]) for name in named if environ.get(name))
    return Places(os.path.realpath(environ.get("HOME") or "/root"), temp, caches)


def prepare(hook: Path, notes: Path, work: Path, python_path: str) -> dict[str, str]:
    """Put the hook into the folder `hook`; the environment in which every Python finds it."""
    hook.mkdir(parents=True, exist_ok=True)
    # From a zip as from a folder: the package may have travelled as either.
    source = pkgutil.get_data(recorder.__package__ or "", "recorder.py")
    (hook / "sitecustomize.py").write_bytes(source or b"")
    return {
        recorder.WRITES: str(notes),
        recorder.WORK: str(work),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(hook), python_path))),
    }


def read_notes(notes: Path) -> list[dict[str, object]]:
    """What the hooks noted; a line that a kill cut is left out."""
    if not notes.exists():
        return []
    found = []
    for line in notes.read_bytes().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def judge(
    notes: Iterable[Mapping[str, object]],
    there: Mapping[str, bool],
    known: Places,
) -> list[Outside]:
    """All that was changed outside, each path once. Pure; `there`: whether a path exists now."""
    found: dict[str, Outside] = {}
    noted = list(notes)
    private = [str(note["path"]) for note in noted if note["what"] == "temporary"]
    made = {str(n["path"]) for n in noted if not n.get("was_there")}
    for note in noted:
        path, what = str(note["path"]), str(note["what"])
        if path not in found or not found[path].by:
            found[path] = Outside(path, what, str(note["by"]))
    return [
        Outside(item.path, item.what, item.by, _harmless(item, private, made, there, known))
        for item in sorted(found.values(), key=lambda item: item.path)
    ]


def _harmless(
    item: Outside,
    private: Iterable[str],
    made: Iterable[str],
    there: Mapping[str, bool],
    known: Places,
) -> str:
    """Why nobody else can depend on it, '' where somebody can."""
    if "__pycache__" in item.path.split("/") or item.path.endswith(".pyc"):
        return mark("compiled Python")
    if any(_is_below(item.path, folder) for folder in private):
        return mark("a temporary file with a name of its own")
    caches = [*known.caches, *(f"{known.home}/{name}" for name in _CACHES)]
    if any(_is_below(item.path, folder) for folder in caches):
        return mark("a cache")
    if any(item.path.startswith(f"{known.temp}/{name}") for name in _OF_TEMP):
        return mark("a temporary file of torch's or Python's")
    if not there.get(item.path, False) and item.path in made:
        return mark("removed again")
    return ""


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
