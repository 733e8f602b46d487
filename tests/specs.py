"""What an attempt is told, for tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from boxcar.shared.files.attempt_spec import AttemptSpec
from boxcar.shared.paths import ScratchPaths


def make_spec(folder: Path, **changes: Any) -> AttemptSpec:
    """Attempt 1 at the cell a, by one python, in this folder."""
    scratch = ScratchPaths(folder / "data", "tiny")
    values: dict[str, Any] = {
        "run": "tiny", "cell": "a", "attempt": 1, "release": "r1", "launcher": "python",
        "words": ("train.py",), "env": {}, "ranks": 1, "nodes": 1, "python": sys.executable,
        "python_path": (), "workdir": str(folder), "out": str(scratch.out("a")), "resume": "",
        "data_dir": str(folder / "data"), "durable_dir": str(folder / "durable"),
        "credentials": str(folder / "none.json"), "grace_s": 60.0,
    }  # fmt: skip
    return AttemptSpec(**values | changes)
