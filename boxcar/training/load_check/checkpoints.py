"""Results that are pickles at heart: files of torch.save, and pickles by themselves.

Each function returns the problems of a file, as sentences, and the facts about it. torch is
imported where it is used: a laptop may lack it, and then only these files cannot be looked at. A
checkpoint is mapped into memory; one of torch's legacy format, and a pickle, are read into it.

Not covered: whether a model would take these weights, and flipped bits. Of those torch notices
hardly any; the manifest's hashes are there for them.
"""

from __future__ import annotations

import pickle
import re
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.training import torch_private
from boxcar.training.load_check import documents, pickles, tree

_ZIP = b"PK\x03\x04"
_PICKLE = b"\x80"
_COUNTERS = ("step", "epoch")
_NAMED = 10


def look_at_torch(
    path: Path, keys: Sequence[str], *, may_run_code: bool
) -> tuple[list[str], dict[str, Any]]:
    """A file of torch.save, also of the time before its zip format."""
    import torch

    problem = _unfit(path, may_run_code)
    if problem:
        return [problem], {}
    try:
        value = torch.load(
            path, map_location="cpu", mmap=_begins(path, _ZIP), weights_only=not may_run_code
        )
    # A damaged file fails inside zip, pickle or torch, with a different exception each time.
    except Exception as error:
        return [_why_not_loaded(path, error, may_run_code)], {}
    return judge(value, keys)


def looks_like_torch(path: Path) -> bool:
    """Whether a file begins like one of torch.save: `.bin` is said of anything."""
    return _begins(path, _ZIP) or _begins(path, _PICKLE)


def look_at_pickle(
    path: Path, keys: Sequence[str], *, may_run_code: bool
) -> tuple[list[str], dict[str, Any]]:
    """A pickle; one that would call anything is refused unless it may."""
    with path.open("rb") as file:
        if may_run_code:
            return judge(pickle.load(file), keys)
        value, names = pickles.load_inert(file)
    return ([_would_run(names)], {}) if names else judge(value, keys)


def judge(
    value: Any, keys: Sequence[str], *, is_lazy: bool = False
) -> tuple[list[str], dict[str, Any]]:
    """What a loaded tree holds and lacks. `is_lazy`: its tensors are read when asked for."""
    from boxcar.training.load_check import tensors

    leaves = tree.leaves(value)
    survey = tensors.survey(leaves if is_lazy else tensors.distinct(leaves))
    problems = [*survey.problems, *tree.missing(value, keys)]
    if survey.is_empty:
        problems.append("holds nothing: no tensor and no value")
    return problems, survey.facts | _counters(value)


def _counters(value: Any) -> dict[str, int]:
    top = value if isinstance(value, Mapping) else {}
    found = {name: top[name] for name in _COUNTERS if name in top}
    return {
        name: number
        for name, number in found.items()
        if type(number) is int and documents.is_finite_number(number)
    }


def _begins(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _unfit(path: Path, may_run_code: bool) -> str | None:
    """Why torch should not even be asked to load this."""
    if not looks_like_torch(path):
        with path.open("rb") as file:
            return f"is not a torch checkpoint: it begins with {file.read(8)!r}"
    # Before 2.6 torch goes on to load these two although only weights were asked for.
    if _begins(path, _PICKLE) and tarfile.is_tarfile(path):
        return "is a tar archive, which torch cannot load without executing code"
    entries = _entries(path)
    if not may_run_code and any(entry.filename.endswith("/constants.pkl") for entry in entries):
        return _would_run(["a TorchScript program"])
    return next((_inflating(entry) for entry in entries if _is_inflating(entry)), None)


def _is_inflating(entry: zipfile.ZipInfo) -> bool:
    is_data = "/data/" in entry.filename or entry.filename.endswith("/data.pkl")
    return is_data and entry.compress_type != zipfile.ZIP_STORED


def _inflating(entry: zipfile.ZipInfo) -> str:
    return (
        f"holds {entry.filename} compressed, {entry.file_size} bytes when it is not; "
        "torch stores its tensors as they are"
    )


def _entries(path: Path) -> list[zipfile.ZipInfo]:
    """Nothing for a legacy file, and for an archive whose end is missing."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except zipfile.BadZipFile:
        return []


def _why_not_loaded(path: Path, error: Exception, may_run_code: bool) -> str:
    said = f"(torch: {_one_line(error)})"
    if _begins(path, _ZIP) and not zipfile.is_zipfile(path):
        return f"is truncated: the end of its archive is missing {said}"
    refused = [] if may_run_code else _refused_globals(path)
    if refused:
        return _would_run(refused)
    if isinstance(error, (EOFError, IndexError)) or "unexpected EOF" in str(error):
        return f"is truncated {said}"
    return f"cannot be loaded {said}"


def _one_line(error: Exception) -> str:
    """torch puts its reason into the middle of advice on how to load the file all the same."""
    text = str(error)
    reason = re.search(r"WeightsUnpickler error:\s*(.+)", text)
    lines = [reason[1]] if reason else text.splitlines()
    return next((line.strip() for line in lines if line.strip()), type(error).__name__)


def _refused_globals(path: Path) -> list[str]:
    """What the checkpoint names beyond what torch's own loader takes as harmless."""
    allowed = torch_private.harmless_globals()
    return [name for name in _named_globals(path) if name not in allowed]


def _named_globals(path: Path) -> list[str]:
    if not _begins(path, _ZIP):
        with path.open("rb") as file:
            return pickles.globals_of(file)
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith("/data.pkl"):
                with archive.open(name) as file:
                    return pickles.globals_of(file)
    return []


def _would_run(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"would execute code when it is loaded: {', '.join(names[:_NAMED])}{more}. Save plain "
        "values and tensors; or, if you trust who wrote it, name it to `verify --allow-pickle` on "
        "the laptop"
    )
