"""The laptop's own look at what was pulled: loaded by the Python that runs Boxcar here."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common import install_line
from boxcar.shared import load_child
from boxcar.shared.files.plan import BYTES_ONLY, Artifact
from boxcar.shared.files.receipt import HASHED, Finding
from boxcar.shared.load_child import PLAIN, UNCHECKED, Child, Loaded, Manner

_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_TEXT = (".csv", ".json", ".jsonl")


def load(folder: Path, files: Sequence[Artifact], manner: Manner = PLAIN) -> Loaded:
    """Load every file of `files`, given relative to `folder`.

    Files of `load: trusted` are not: a rented machine wrote them. Nor is what needs torch where
    there is none: its findings say that it was only hashed (both: trusted.py). Raises BoxcarError
    as `load_child.load` does.
    """
    hashed = [] if has_torch() else [file for file in files if _needs_torch(file)]
    left = [file for file in files if file not in hashed]
    # Not the current folder: a json.py of the user's would win over Python's.
    loaded = load_child.load(Child(sys.executable, Path("/")), folder, left, manner)
    found = {file.path: _hashed(file) for file in hashed}
    return replace(loaded, findings=loaded.findings | found)


def has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def how_to_get_torch() -> str:
    """What to type, for torch that is for the CPU."""
    if not install_line.has_pip():
        return f'pipx inject boxcar-run torch numpy --pip-args "--extra-index-url {_CPU_INDEX}"'
    return f"{sys.executable} -m pip install torch --index-url {_CPU_INDEX}"


def _needs_torch(file: Artifact) -> bool:
    return file.load != BYTES_ONLY and Path(file.path).suffix not in _TEXT


def _hashed(file: Artifact) -> Finding:
    return Finding(file.path, UNCHECKED, facts={HASHED: True}, load=file.load)
