"""One artifact, looked at: is it a file, does it load, does it hold what it must, is it finite.

What is of no known kind (see shared/artifacts/file_kinds.py) must at least not be empty.
"""

from __future__ import annotations

import contextlib
import importlib
import resource
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared import paths
from boxcar.shared.artifacts import file_kinds
from boxcar.shared.artifacts.file_kinds import SHARD, SHARDED, kind_of
from boxcar.shared.errors import DamagedError, reason_of, words_of
from boxcar.shared.files.plan import BYTES_ONLY, Artifact
from boxcar.shared.files.receipt import BYTES, WHY_BYTES, Finding
from boxcar.shared.metrics.result_files import last_of_file
from boxcar.shared.process.load_child import UNCHECKED
from boxcar.shared.sentence import _, quotation
from boxcar.training.load_check import (
    arrays,
    checkpoints,
    documents,
    protobuf,
    refusals,
    whole_files,
)
from boxcar.training.load_check.refusals import How, NotItsKindError

_LIBRARIES = {
    "numpy": ("numpy", "torch"),
    "pickle": ("torch",),
    "safetensors": ("torch", "safetensors"),
    SHARDED: ("torch", "boxcar.training.checkpoint.dcp_files"),
    "torch": ("torch",),
}
_LONGEST_REASON = 300
Looked = tuple[list[str], dict[str, Any]]


def look(folder: Path, artifact: Artifact, how: How) -> Finding:
    """What there is to say about one file below `folder`. Whatever it holds, this returns."""
    kind = BYTES if artifact.load == BYTES_ONLY else kind_of(folder, artifact.path)
    problem = _not_a_file(folder, artifact.path)
    if problem:
        return Finding(artifact.path, kind, (problem,))
    path = paths.inside(folder, artifact.path)
    if kind == BYTES and artifact.load != BYTES_ONLY and documents.is_json(path):
        kind = "json"
    try:
        problems, facts = _look_as(kind, path, artifact, how)
    except MemoryError:
        return Finding(artifact.path, UNCHECKED, (_too_large(path),))
    if artifact.load != BYTES_ONLY:
        why = file_kinds.why_bytes(folder, artifact.path) if kind == BYTES else ""
        facts |= {WHY_BYTES: why} if why else {}
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
            return _("is a symbolic link, expected a file")
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return _("is not a file")
        if status.st_size == 0:
            return _("is empty (0 bytes)")
        path.open("rb").close()
    except DamagedError as error:
        return words_of(error)
    except FileNotFoundError:
        return _("is missing")
    except OSError as error:
        return _("cannot be read: {error}", error=reason_of(error))
    return None


def _look_as(kind: str, path: Path, artifact: Artifact, how: How) -> Looked:
    try:
        problems, facts = _LOOKS[kind](path, artifact.keys, how)
        return problems, facts if artifact.load == BYTES_ONLY else facts | last_of_file(path)
    except ImportError as error:
        problem = refusals.own_code_problem(error, how) if how.is_trusted else None
        return [
            problem
            or _(
                "cannot be loaded here: {error}. Install it for {executable}",
                error=error,
                executable=sys.executable,
            )
        ], {}
    except NotItsKindError as error:
        return [error.sentence(how)], {}
    # These bytes are damaged or made to harm, and fail inside other people's libraries.
    except Exception as error:
        if isinstance(error, MemoryError):
            raise
        problem = refusals.own_code_problem(error, how) if how.is_trusted else None
        return [problem or _reason(error)], {}


def _look_at_bytes(ignored: Path, keys: Sequence[str], __: How) -> Looked:
    return [_("cannot be asked for the key {key!r}: it is only bytes", key=key) for key in keys], {}


_LOOKS: dict[str, Callable[[Path, Sequence[str], How], Looked]] = {
    BYTES: _look_at_bytes,
    SHARD: checkpoints.look_at_shard,
    SHARDED: checkpoints.look_at_index,
    "csv": documents.look_at_csv,
    "hdf5": whole_files.look_at_hdf5,
    "json": documents.look_at_json,
    "jsonl": documents.look_at_jsonl,
    "lightgbm": whole_files.look_at_lightgbm,
    "mindspore": whole_files.look_at_mindspore,
    "numpy": arrays.look_at_numpy,
    "onnx": protobuf.look_at_onnx,
    "pickle": checkpoints.look_at_pickle,
    "safetensors": arrays.look_at_safetensors,
    "torch": checkpoints.look_at_torch,
    "ubjson": whole_files.look_at_ubjson,
    "zip": whole_files.look_at_zip,
}


def _too_large(path: Path) -> str:
    """Nothing is known of it, good or bad: another machine may have the memory."""
    limit_bytes = resource.getrlimit(resource.RLIMIT_AS)[0]
    bound = "" if limit_bytes == resource.RLIM_INFINITY else f", {limit_bytes / 1e9:.1f} GB"
    return _(
        "needs more memory than this check may use{bound}: the file has {size:.1f} GB",
        bound=bound,
        size=path.stat().st_size / 1e9,
    )


def _reason(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    said = quotation(f"{type(error).__name__}: {lines[0][:_LONGEST_REASON]}")
    is_cut = isinstance(error, EOFError) or "truncated" in said
    return (
        _("is truncated ({said})", said=said)
        if is_cut
        else _("cannot be loaded ({said})", said=said)
    )
