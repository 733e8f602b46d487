"""One artifact, looked at: is it a file, does it load, does it hold what it must, is it finite.

What is of no known kind (see kinds.py) must at least not be empty.
"""

from __future__ import annotations

import contextlib
import importlib
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from boxcar.shared import paths
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import BYTES, Finding
from boxcar.training.load_check import arrays, checkpoints, documents, shards
from boxcar.training.load_check.kinds import SHARD, SHARDED, kind_of

_LIBRARIES = {
    "numpy": ("numpy", "torch"),
    "pickle": ("torch",),
    "safetensors": ("torch", "safetensors"),
    SHARDED: ("torch", "boxcar.training.checkpoint.dcp_metadata"),
    "torch": ("torch",),
}
_LONGEST_REASON = 300


def look(folder: Path, artifact: Artifact, *, may_run_code: bool) -> Finding:
    """What there is to say about one file below `folder`. Whatever it holds, this returns."""
    kind = kind_of(folder, artifact.path)
    problem = _not_a_file(folder, artifact.path)
    if problem:
        return Finding(artifact.path, kind, (problem,))
    path = paths.inside(folder, artifact.path)
    if kind == BYTES and documents.is_json(path):
        kind = "json"
    problems, facts = _look_as(kind, path, artifact, may_run_code)
    return Finding(
        artifact.path, kind, tuple(problems), {"size_bytes": path.stat().st_size, **facts}
    )


def import_libraries(kinds: Iterable[str]) -> list[str]:
    """Import what these kinds need, as far as it is there; names and versions."""
    wanted = dict.fromkeys(name for kind in kinds for name in _LIBRARIES.get(kind, ()))
    for name in wanted:
        # Each file that needs it says why it is not there.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if "torch" in sys.modules:
        # A thread for each core would take the training's cores, and gigabytes of address space.
        sys.modules["torch"].set_num_threads(1)
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in wanted}
    return [f"{name} {version}" for name, version in found.items() if version]


def _not_a_file(folder: Path, relative: str) -> str | None:
    try:
        path = paths.inside(folder, relative)
        if paths.has_symlink(folder, relative):
            return "is a symbolic link, expected a file"
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "is not a file"
        if status.st_size == 0:
            return "is empty (0 bytes)"
        path.open("rb").close()
    except DamagedError as error:
        return str(error)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None


def _look_as(
    kind: str, path: Path, artifact: Artifact, may_run_code: bool
) -> tuple[list[str], dict[str, Any]]:
    try:
        return _dispatch(kind, path, artifact.keys, may_run_code)
    except ImportError as error:
        return [f"cannot be loaded here: {error}. Install it for {sys.executable}"], {}
    except MemoryError:
        return ["needs more memory than this check may use"], {}
    # These bytes are damaged or made to harm, and fail inside other people's libraries.
    except Exception as error:
        return [_reason(error)], {}


def _dispatch(
    kind: str, path: Path, keys: tuple[str, ...], may_run_code: bool
) -> tuple[list[str], dict[str, Any]]:
    if kind == "torch":
        return checkpoints.look_at_torch(path, keys, may_run_code=may_run_code)
    if kind == "pickle":
        return checkpoints.look_at_pickle(path, keys, may_run_code=may_run_code)
    if kind == SHARD:
        return shards.look_at_shard(path)
    if kind == BYTES:
        return [f"cannot be asked for the key {key!r}: it is only bytes" for key in keys], {}
    by_kind = {
        "csv": documents.look_at_csv,
        "json": documents.look_at_json,
        "jsonl": documents.look_at_jsonl,
        "numpy": arrays.look_at_numpy,
        "safetensors": arrays.look_at_safetensors,
        SHARDED: shards.look_at_index,
    }
    return by_kind[kind](path, keys)


def _reason(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    said = f"{type(error).__name__}: {lines[0][:_LONGEST_REASON]}"
    is_cut = isinstance(error, EOFError) or "truncated" in said
    return f"is truncated ({said})" if is_cut else f"cannot be loaded ({said})"
