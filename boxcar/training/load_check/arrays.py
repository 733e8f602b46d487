"""Results that are arrays and nothing else: safetensors and NumPy's .npy and .npz.

Each function returns the problems of a file, as sentences, and the facts about it. The libraries
are imported where they are used. Without safetensors its header is checked all the same, and the
facts say that no value was looked at.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zipfile
from collections import ChainMap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from boxcar.shared.artifacts.file_kinds import ZIP
from boxcar.shared.sentence import _, mark, quotation
from boxcar.training.load_check import checkpoints, pickles, refusals, survey
from boxcar.training.load_check.refusals import How, NotItsKindError

_NUMPY, _OBJECTS = b"\x93NUMPY", re.compile(rb"'\|O\d?'")
_LONGEST_NUMPY_HEADER = 1 << 20
_LENGTH_BYTES = 8
# The format's own limit, so that a damaged length does not ask for all memory.
_LARGEST_HEADER_BYTES = 100_000_000


def look_at_numpy(path: Path, keys: Sequence[str], how: How) -> tuple[list[str], dict[str, Any]]:
    """An array of objects is a pickle behind a header, and is read as one."""
    names = checkpoints.listed((), how)
    if how.is_listed:
        return [], names
    import numpy

    objects: dict[str, Any] = {}
    for name, file in () if how.may_run_code else _parts(path):
        if _begins_with_objects(file):
            objects[name], named = pickles.load_inert(file)
            if named.refused:
                return [refusals.would_run(named.refused, how)], {}
    if how.may_run_code:
        loaded = numpy.load(path, allow_pickle=True)
    elif "" in objects:
        loaded = objects[""]
    else:
        arrays = numpy.load(path, mmap_mode="c", allow_pickle=False)
        loaded = ChainMap(objects, arrays) if objects else arrays
    problems, facts = checkpoints.judge(loaded, keys, is_lazy=True)
    return problems, facts | names


def _parts(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The arrays of a .npz by name; a .npy is one without."""
    if not checkpoints.begins_with(path, ZIP):
        with path.open("rb") as file:
            yield "", file
        return
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as part:
                yield name.removesuffix(".npy"), part


def _begins_with_objects(file: IO[bytes]) -> bool:
    """By the header, behind which `file` is left."""
    magic = file.read(8)
    if not magic.startswith(_NUMPY):
        return False
    length = int.from_bytes(file.read(2 if magic[6] == 1 else 4), "little")
    return bool(_OBJECTS.search(file.read(min(length, _LONGEST_NUMPY_HEADER))))


def look_at_safetensors(
    path: Path, keys: Sequence[str], ignored: How
) -> tuple[list[str], dict[str, Any]]:
    header = _read_header(path)
    nothing: list[str] = [_("holds nothing: no tensor")]
    problems = survey.missing_keys(header, keys) if header else nothing
    try:
        found, facts = _look_at_values(path)
    except ImportError as error:
        return problems, _header_facts(header) | {
            "unlooked": [_("every value: {error}", error=error)]
        }
    return [*found, *problems], facts


def _look_at_values(path: Path) -> tuple[list[str], dict[str, Any]]:
    from safetensors import safe_open

    from boxcar.training.load_check import tensors

    with safe_open(str(path), framework="pt", device="cpu") as file:
        survey = tensors.survey((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118
    return survey.problems, survey.facts


def _read_header(path: Path) -> dict[str, Any]:
    """The entries of a safetensors file by name. Raises NotItsKindError."""
    size_bytes = path.stat().st_size
    with path.open("rb") as file:
        header_bytes = _header_length(file.read(_LENGTH_BYTES), size_bytes)
        header = _parse_header(file.read(header_bytes))
    _check_spans(header, size_bytes - _LENGTH_BYTES - header_bytes)
    return header


def _header_length(head: bytes, size_bytes: int) -> int:
    length = struct.unpack("<Q", head)[0] if len(head) == _LENGTH_BYTES else _LENGTH_BYTES
    if length > min(size_bytes - _LENGTH_BYTES, _LARGEST_HEADER_BYTES):
        raise NotItsKindError(
            _(
                "is truncated, or no safetensors file: it has {size_bytes} bytes, and its header "
                "alone claims {length}",
                size_bytes=size_bytes,
                length=length,
            )
        )
    return length


def _parse_header(data: bytes) -> dict[str, Any]:
    try:
        header = json.loads(data)
        header.pop("__metadata__", None)
        return {name: (entry["shape"], *entry["data_offsets"]) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotItsKindError(
            _("is damaged: its header cannot be read: {error}", error=quotation(repr(error)))
        ) from error


def _check_spans(header: dict[str, Any], data_bytes: int) -> None:
    """Tensors follow each other without a gap, to the end of the file."""
    end = 0
    for begin, stop in sorted((begin, stop) for _shape, begin, stop in header.values()):
        if begin != end or stop < begin:
            raise NotItsKindError(
                _("is damaged: its tensors leave or share bytes at {begin}", begin=min(begin, end))
            )
        end = stop
    if end != data_bytes:
        how = (
            mark("is truncated: its tensors take {end} bytes, {data_bytes} are there")
            if end > data_bytes
            else mark("is damaged: its tensors take {end} bytes, {data_bytes} are there")
        )
        raise NotItsKindError(_(how, end=end, data_bytes=data_bytes))


def _header_facts(header: dict[str, Any]) -> dict[str, Any]:
    return {
        "tensors": len(header),
        "parameters": sum(math.prod(shape) for shape, _, _ in header.values()),
        "bytes": sum(stop - begin for _shape, begin, stop in header.values()),
    }
