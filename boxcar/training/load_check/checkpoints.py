"""Results that are pickles at heart: files of torch.save, and pickles by themselves.

Each function returns the problems of a file, as sentences, and the facts about it. torch is
imported where it is used: a laptop may lack it, and then only these files cannot be looked at. A
checkpoint is mapped into memory; one of torch's legacy format, and a pickle, are read into it.

Torch notices hardly any flipped bit; the checksums of its archive do. Not covered: whether a model
would take these weights, and flipped bits in a legacy file, in a pickle, and in pieces of a sharded
checkpoint, which have no checksums or are read one by one.
"""

from __future__ import annotations

import importlib.util
import pickle
import re
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.artifacts.file_kinds import ZIP
from boxcar.shared.files.receipt import GLOBALS
from boxcar.training.load_check import documents, pickles, refusals, torch_files
from boxcar.training.load_check.refusals import How
from boxcar.training.load_check.survey import missing_keys, survey_arrays, tree_leaves
from boxcar.training.load_check.torch_files import PICKLE, archive_entries, begins_with

_COUNTERS = ("step", "epoch")
_NAMED = 40
# What torch says of names that it does not take.
_REFUSAL = re.compile(r"[Uu]nsupported (global|class)|unrecognized function|allowed globals")


def look_at_torch(path: Path, keys: Sequence[str], how: How) -> tuple[list[str], dict[str, Any]]:
    """A file of torch.save, also of the time before its zip format."""
    problem = _unfit(path, how)
    if problem:
        return [problem], {}
    names = listed(torch_files.torch_names_in(path), how)
    if how.is_listed:
        return [], names
    try:
        value = torch_files.load_torch(path, how)
    except MemoryError:
        raise
    except Exception as error:
        return [_why_not_loaded(path, error, how)], names
    problems, facts = judge(value, keys)
    return [*problems, *torch_files.damages(path)], facts | names


def look_at_pickle(path: Path, keys: Sequence[str], how: How) -> tuple[list[str], dict[str, Any]]:
    """A pickle, also of joblib's; one that would call anything is refused unless it may."""
    if how.is_listed:
        with pickles.opened_pickle(path) as file:
            return [], listed(pickles.names_in(file), how)
    if how.may_run_code:
        return _look_at_own(path, keys, how)
    with pickles.opened_pickle(path) as file:
        value, named = pickles.load_inert(file)
        pickles.check_to_the_end(path, file)
    return ([refusals.would_run(named.refused, how)], {}) if named.refused else judge(value, keys)


def _look_at_own(path: Path, keys: Sequence[str], how: How) -> tuple[list[str], dict[str, Any]]:
    with pickles.opened_pickle(path) as file:
        names = pickles.names_in(file)
        pickles.check_to_the_end(path, file)
    try:
        problems, facts = judge(_load_own(path, names), keys)
    except MemoryError:
        raise
    except Exception as error:
        problem = refusals.own_code_problem(error, how) if how.is_trusted else None
        if problem is None:
            raise
        return [problem], listed(names, how)
    return problems, facts | listed(names, how)


def _load_own(path: Path, names: Sequence[str]) -> Any:
    if any(name.startswith(f"{pickles.JOBLIB_HOME}.") for name in names):
        import joblib

        return joblib.load(path)
    with pickles.opened_pickle(path) as file:
        return pickle.load(file)


def listed(names: Sequence[str], how: How) -> dict[str, Any]:
    """The fact that tells a file which only its box loads, there and here."""
    return {GLOBALS: list(names[:_NAMED])} if how.is_trusted else {}


def judge(
    value: Any, keys: Sequence[str], *, is_lazy: bool = False
) -> tuple[list[str], dict[str, Any]]:
    """What a loaded tree holds and lacks. `is_lazy`: its tensors are read when asked for."""
    leaves = tree_leaves(value)
    if importlib.util.find_spec("torch") is None:
        survey = survey_arrays(leaves)
    else:
        from boxcar.training.load_check import tensors

        survey = tensors.survey(leaves if is_lazy else tensors.distinct(leaves))
    problems = [*survey.problems, *missing_keys(value, keys)]
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


def _unfit(path: Path, how: How) -> str | None:
    """Why torch should not even be asked to load this."""
    if not (begins_with(path, ZIP) or begins_with(path, PICKLE)):
        with path.open("rb") as file:
            what = f"is not a torch checkpoint: it begins with {file.read(8)!r}"
            raise refusals.NotItsKindError(what)
    # Before 2.6 torch goes on to load these two although only weights were asked for.
    if begins_with(path, PICKLE) and tarfile.is_tarfile(path):
        return "is a tar archive, which torch cannot load without executing code"
    found = archive_entries(path)
    is_script = any(entry.filename.endswith("/constants.pkl") for entry in found)
    if is_script and not (how.may_run_code or how.is_trusted):
        return refusals.would_run(["a TorchScript program"], how)
    return next((_inflating(entry) for entry in found if _is_inflating(entry)), None)


def _is_inflating(entry: zipfile.ZipInfo) -> bool:
    is_data = "/data/" in entry.filename or entry.filename.endswith("/data.pkl")
    return is_data and entry.compress_type != zipfile.ZIP_STORED


def _inflating(entry: zipfile.ZipInfo) -> str:
    return (
        f"holds {entry.filename} compressed, {entry.file_size} bytes when it is not; "
        "torch stores its tensors as they are"
    )


def _why_not_loaded(path: Path, error: Exception, how: How) -> str:
    said = f"(torch: {_one_line(error)})"
    if begins_with(path, ZIP) and not torch_files.has_end(path):
        return f"is truncated: the end of its archive is missing {said}"
    if how.is_trusted and (problem := refusals.own_code_problem(error, how)):
        return problem
    refused = () if how.may_run_code else torch_files.torch_named_in(path).refused
    if refused:
        return refusals.would_run(refused, how)
    if not how.may_run_code and _REFUSAL.search(str(error)):
        return refusals.of_old_torch(torch_files.torch_names_in(path), how)
    if "Unsupported operand" in str(error):
        return refusals.of_protocol(said, how)
    if isinstance(error, (EOFError, IndexError)) or "unexpected EOF" in str(error):
        return f"is truncated {said}"
    return f"cannot be loaded {said}"


def _one_line(error: Exception) -> str:
    """torch puts its reason into the middle of advice on how to load the file all the same."""
    text = str(error)
    reason = re.search(r"WeightsUnpickler error:\s*(.+)", text)
    lines = [reason[1]] if reason else text.splitlines()
    return next((line.strip() for line in lines if line.strip()), type(error).__name__)
