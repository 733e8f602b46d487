"""The laptop's own look at what was pulled: loaded by the Python that runs Boxcar here."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from boxcar.shared import load_child
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Artifact
from boxcar.shared.load_child import PLAIN, Child, Loaded, Manner

_TEXT = (".csv", ".json", ".jsonl")


def load(folder: Path, files: Sequence[Artifact], manner: Manner = PLAIN) -> Loaded:
    """Load every file of `files`, given relative to `folder`.

    Files of `load: trusted` are not: a rented machine wrote them (trusted.py). Raises InputError,
    with the command to type, where torch is needed and not there, and BoxcarError as
    `load_child.load` does.
    """
    is_needed = any(Path(file.path).suffix not in _TEXT for file in files)
    if is_needed and importlib.util.find_spec("torch") is None:
        raise InputError(
            f"torch is missing, and results are verified by loading them. Type: {sys.executable} "
            "-m pip install torch --index-url https://download.pytorch.org/whl/cpu"
        )
    # Not the current folder: a json.py of the user's would win over Python's.
    return load_child.load(Child(sys.executable, Path("/")), folder, files, manner)
