"""Results that are pickles at heart: files of torch.save, and pickles by themselves.

Each function returns the problems of a file, as sentences, and the facts about it. torch is
imported where it is used: a laptop may lack it, and then only these files cannot be looked at. A
checkpoint is mapped into memory; one of torch's legacy format, and a pickle, are read into it.

Torch notices hardly any flipped bit; the checksums of its archive do. Not covered: whether a model
would take these weights, and flipped bits in a legacy file, in a pickle, and in pieces of a sharded
checkpoint, which have no checksums or are read one by one.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import pickle
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from boxcar.shared.artifacts.file_kinds import SHARDED_INDEX, ZIP, has_zip_end
from boxcar.shared.disk import regular_file
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.receipt import GLOBALS
from boxcar.shared.sentence import _, quotation
from boxcar.training import torch_private
from boxcar.training.load_check import documents, pickles, refusals, stand_ins
from boxcar.training.load_check.pickles import Named
from boxcar.training.load_check.refusals import How
from boxcar.training.load_check.survey import missing_keys, survey_arrays, tree_leaves

# --- A file of torch.save: what it names, and what it holds. torch is imported where needed.
# `source` is a path, or the bytes of one piece of a sharded checkpoint.


PICKLE = b"\x80"
Source = Path | io.BytesIO
_BLOCK_BYTES = 1 << 20
# What torch says where the system gives it no more memory.
_NO_MEMORY = re.compile(r"(?:tried to allocate|unable to mmap) (\d+) bytes")


def load_torch(source: Source, how: How) -> Any:
    """The value. Without its code, what it names must be harmless; torch decides, and stands in.

    Raises MemoryError where there was too little, else whatever torch raises: a damaged file fails
    inside zip, pickle or torch, with a different exception each time.
    """
    import torch

    options: dict[str, Any] = {"map_location": "cpu", "weights_only": not how.may_run_code}
    if isinstance(source, Path):
        options["mmap"] = begins_with(source, ZIP)
    try:
        with _taking(() if how.may_run_code else torch_names_in(source)):
            return torch.load(source, **options)
    except Exception as error:
        if _is_for_memory(source, error):
            raise MemoryError(str(error)) from error
        raise


def _is_for_memory(source: Source, error: Exception) -> bool:
    """Not where a damaged file claims to hold more than it is large."""
    found = _NO_MEMORY.search(str(error))
    size_bytes = source.stat().st_size if isinstance(source, Path) else len(source.getbuffer())
    return found is not None and int(found[1]) <= size_bytes


def torch_named_in(source: Source) -> Named:
    """What it names, and what is refused of that, as far as it can be read."""
    return _named_in(source, torch_private.harmless_globals())


def torch_names_in(source: Source) -> tuple[str, ...]:
    """All that it names; nothing where it is so damaged that torch has to say how."""
    try:
        return _named_in(source, ()).names
    except Exception:
        return ()


def begins_with(source: Source, magic: bytes) -> bool:
    with _opened(source) as file:
        return file.read(len(magic)) == magic


def archive_entries(source: Source) -> list[zipfile.ZipInfo]:
    """Nothing for a legacy file, and for an archive whose end is missing."""
    try:
        with _opened(source) as file, zipfile.ZipFile(file) as archive:
            return archive.infolist()
    except zipfile.BadZipFile:
        return []


def has_end(path: Path) -> bool:
    with path.open("rb") as file:
        return has_zip_end(file)


def damages(source: Source) -> Iterator[str]:
    """Sentences: the parts of an archive whose bytes are not those of its checksums, which torch
    does not compare. A part without one (set_crc32_options, skip_data) is not judged.
    """
    if not begins_with(source, ZIP):
        return
    with _opened(source) as file, zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if entry.CRC and _has_wrong_sum(archive, entry):
                yield _(
                    "is damaged: {filename} is not what its checksum says", filename=entry.filename
                )


def _has_wrong_sum(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    try:
        with archive.open(entry) as part:
            while part.read(_BLOCK_BYTES):
                pass
    except zipfile.BadZipFile as error:
        return "CRC" in str(error)  # what else zipfile minds, torch has read
    return False


def _named_in(source: Source, allowed: Iterable[str]) -> Named:
    with _opened(source) as file:
        if not begins_with(source, ZIP):
            return pickles.named_in(file, frozenset(allowed))
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                if name.endswith("/data.pkl"):
                    with archive.open(name) as pickled:
                        return pickles.named_in(pickled, frozenset(allowed))
    return Named()


@contextlib.contextmanager
def _opened(source: Source) -> Iterator[IO[bytes]]:
    """From its beginning; a piece stays where it was for whoever reads on."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield file
    else:
        yield io.BytesIO(source.getbuffer())


@contextlib.contextmanager
def _taking(names: Iterable[str]) -> Iterator[None]:
    """Inside, torch takes stand-ins for those of these names that are harmless."""
    from torch import serialization

    before = list(serialization.get_safe_globals())
    serialization.add_safe_globals([*stand_ins.of_names(names)])
    try:
        yield
    finally:
        # A context manager of torch's own is there only since 2.5.
        serialization.clear_safe_globals()
        serialization.add_safe_globals(before)


_COUNTERS = ("step", "epoch")
_NAMED = 40
# What torch says of names that it does not take.
_REFUSAL = re.compile(r"[Uu]nsupported (global|class)|unrecognized function|allowed globals")


def look_at_torch(path: Path, keys: Sequence[str], how: How) -> tuple[list[str], dict[str, Any]]:
    """A file of torch.save, also of the time before its zip format."""
    problem = _unfit(path, how)
    if problem:
        return [problem], {}
    names = listed(torch_names_in(path), how)
    if how.is_listed:
        return [], names
    try:
        value = load_torch(path, how)
    except MemoryError:
        raise
    except Exception as error:
        return [_why_not_loaded(path, error, how)], names
    problems, facts = judge(value, keys)
    return [*problems, *damages(path)], facts | names


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
        problems.append(_("holds nothing: no tensor and no value"))
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
            what = _("is not a torch checkpoint: it begins with {file!r}", file=file.read(8))
            raise refusals.NotItsKindError(what)
    # Before 2.6 torch goes on to load these two although only weights were asked for.
    if begins_with(path, PICKLE) and tarfile.is_tarfile(path):
        return _("is a tar archive, which torch cannot load without executing code")
    found = archive_entries(path)
    is_script = any(entry.filename.endswith("/constants.pkl") for entry in found)
    if is_script and not (how.may_run_code or how.is_trusted):
        return refusals.would_run(["a TorchScript program"], how)
    return next((_inflating(entry) for entry in found if _is_inflating(entry)), None)


def _is_inflating(entry: zipfile.ZipInfo) -> bool:
    is_data = "/data/" in entry.filename or entry.filename.endswith("/data.pkl")
    return is_data and entry.compress_type != zipfile.ZIP_STORED


def _inflating(entry: zipfile.ZipInfo) -> str:
    return _(
        "holds {filename} compressed, {file_size} bytes when it is not; torch stores its tensors "
        "as they are",
        filename=entry.filename,
        file_size=entry.file_size,
    )


def _why_not_loaded(path: Path, error: Exception, how: How) -> str:
    said = _("(torch: {said})", said=quotation(_one_line(error)))
    if begins_with(path, ZIP) and not has_end(path):
        return _("is truncated: the end of its archive is missing {said}", said=said)
    if how.is_trusted and (problem := refusals.own_code_problem(error, how)):
        return problem
    refused = () if how.may_run_code else torch_named_in(path).refused
    if refused:
        return refusals.would_run(refused, how)
    if not how.may_run_code and _REFUSAL.search(str(error)):
        return refusals.of_old_torch(torch_names_in(path), how)
    if "Unsupported operand" in str(error):
        return refusals.of_protocol(said, how)
    if isinstance(error, (EOFError, IndexError)) or "unexpected EOF" in str(error):
        return _("is truncated {said}", said=said)
    return _("cannot be loaded {said}", said=said)


def _one_line(error: Exception) -> str:
    """torch puts its reason into the middle of advice on how to load the file all the same."""
    text = str(error)
    reason = re.search(r"WeightsUnpickler error:\s*(.+)", text)
    lines = [reason[1]] if reason else text.splitlines()
    return next((line.strip() for line in lines if line.strip()), type(error).__name__)


# --- A sharded checkpoint: a folder that torch.distributed.checkpoint (DCP) wrote.
# Looked at through its `.metadata`, which is read by dcp_files without running anything; each
# shard's piece is loaded by itself with weights_only, so memory is bounded by the largest piece.
# Not covered: pieces that were written compressed or encrypted, which are named in `unlooked`.


_NAMED_PIECES = 10


def look_at_index(path: Path, keys: Sequence[str], how: How) -> tuple[list[str], dict[str, Any]]:
    """The whole checkpoint in the folder of this `.metadata`."""
    names = listed(torch_names_in(path), how)
    if how.is_listed:
        return [], names
    from boxcar.training.checkpoint import dcp_files
    from boxcar.training.load_check import tensors

    folder = path.parent
    try:
        metadata = dcp_files.read_metadata(path, _files(folder))
    except DamagedError as error:
        return [str(error).removeprefix(f"{path}: ")], {}
    saved = metadata.state_dict_metadata
    problems = [*missing_keys(dict.fromkeys(saved), keys), *_gaps(metadata)]
    unlooked: list[str] = []
    survey = tensors.survey(_leaves(folder, metadata, problems, unlooked, how))
    if survey.is_empty and not problems:
        problems.append(_("holds nothing: no tensor and no value"))
    facts = survey.facts | names | ({"unlooked": unlooked[:_NAMED_PIECES]} if unlooked else {})
    return [*survey.problems, *problems[:_NAMED_PIECES]], facts


def look_at_shard(path: Path, ignored: Sequence[str], __: How) -> tuple[list[str], dict[str, Any]]:
    """A shard says nothing without its index, whose look covers it."""
    if path.with_name(SHARDED_INDEX).is_file():
        return [], {}
    return [
        _(
            "is a part of a sharded checkpoint, whose {sharded_index} is not beside it",
            sharded_index=SHARDED_INDEX,
        )
    ], {}


def _files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def _gaps(metadata: Any) -> Iterator[str]:
    """Tensors of which a piece is not in any shard, and values that lie nowhere."""
    stored = {(index.fqn, _at(index.offset)) for index in metadata.storage_data}
    for name, saved in metadata.state_dict_metadata.items():
        chunks = getattr(saved, "chunks", None)
        if chunks is None:
            if not any(fqn == name for fqn, _ in stored):
                yield _("{name} lies in no shard", name=name)
            continue
        if missing := [chunk for chunk in chunks if (name, _at(chunk.offsets)) not in stored]:
            yield _(
                "{name} lacks {n} of its {all} pieces", name=name, n=len(missing), all=len(chunks)
            )
        elif sum(math.prod(chunk.sizes) for chunk in chunks) < math.prod(saved.size):
            yield _(
                "{name} lacks a piece: its shards hold less than its shape {size}",
                name=name,
                size=tuple(saved.size),
            )


def _at(offset: Any) -> tuple[int, ...] | None:
    return None if offset is None else tuple(offset)


def _leaves(
    folder: Path, metadata: Any, problems: list[str], unlooked: list[str], how: How
) -> Iterator[tuple[str, Any]]:
    """Every piece, loaded; what cannot be loaded is a problem of that piece."""
    for index, info in metadata.storage_data.items():
        name = index.fqn
        if getattr(info, "transform_descriptors", None):
            unlooked.append(name)
            continue
        try:
            value = _piece(folder, info, how)
        except MemoryError:
            raise
        # Damaged bytes fail inside zip, pickle or torch, with a different exception each time.
        except Exception as error:
            said = (str(error).splitlines() or [""])[0][:200]
            problems.append(
                _(
                    "{name} in {relative_path} cannot be loaded ({said})",
                    name=name,
                    relative_path=info.relative_path,
                    said=said,
                )
            )
            continue
        if problem := _unlike(value, index, metadata.state_dict_metadata.get(name)):
            problems.append(
                _(
                    "{name} in {relative_path} {problem}",
                    name=name,
                    relative_path=info.relative_path,
                    problem=problem,
                )
            )
        yield from ((f"{name}.{path}" if path else name, leaf) for path, leaf in tree_leaves(value))


def _piece(folder: Path, info: Any, how: How) -> Any:
    with regular_file.open_left(folder, info.relative_path) as file:
        file.seek(info.offset)
        data = file.read(max(0, info.length))
    if len(data) < info.length:
        raise DamagedError(
            _("truncated: {n} of its {length} bytes are there", n=len(data), length=info.length)
        )
    return load_torch(io.BytesIO(data), how)


def _unlike(value: Any, index: Any, saved: Any) -> str | None:
    """Where a piece has another shape than the index says."""
    sizes = [c.sizes for c in getattr(saved, "chunks", ()) if _at(c.offsets) == _at(index.offset)]
    if not sizes:
        return None
    found = tuple(getattr(value, "shape", ()))
    return (
        None
        if found == tuple(sizes[0])
        else _("has the shape {found}, expected {tuple}", found=found, tuple=tuple(sizes[0]))
    )
