"""The files that a cell left, as trees that can be compared.

Pickles are not trusted: torch.load runs with weights_only=True, NumPy without pickles. What cannot
be read as a tree is compared by its bytes, and that is said.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from boxcar.shared.disk import digest

_TORCH = (".pth", ".pt", ".ckpt", ".bin")


def load_left(path: Path) -> tuple[Any, str]:
    """The tree of a file or folder, and why its bytes stand for it ('' where they do not)."""
    if path.is_dir():
        files = sorted(item for item in path.rglob("*") if item.is_file())
        names = {item.relative_to(path).as_posix(): digest.of_file(item) for item in files}
        return names, "a folder is compared by the bytes of its files"
    try:
        return _read(path), ""
    # A damaged file fails inside zip, pickle, torch or NumPy, each with exceptions of its own.
    except Exception as error:
        return {"bytes": digest.of_file(path)}, f"compared by its bytes, as {_why(error)}"


def _why(error: Exception) -> str:
    """torch puts its reason into the middle of advice on how to load the file all the same."""
    reason = re.search(r"WeightsUnpickler error:\s*(.+)", str(error))
    if reason:
        return f"it would run code when it is loaded ({reason[1].strip()})"
    return f"it cannot be read: {(str(error) or type(error).__name__).splitlines()[0]}"


def _read(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".json":
        return json.loads(path.read_bytes())
    if suffix in _TORCH:
        import torch

        return torch.load(path, map_location="cpu", weights_only=True)
    if suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(str(path))
    if suffix in (".npy", ".npz"):
        import numpy

        loaded = numpy.load(path, allow_pickle=False)
        return dict(loaded) if suffix == ".npz" else loaded
    return {"bytes": digest.of_file(path)}
