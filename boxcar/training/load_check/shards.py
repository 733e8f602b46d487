"""A sharded checkpoint: a folder that torch.distributed.checkpoint (DCP) wrote.

Looked at through its `.metadata`, which is read by dcp_metadata without running anything; each
shard's piece is loaded by itself with weights_only, so memory is bounded by the largest piece.

Not covered: pieces that were written compressed or encrypted, which are named in `unlooked`.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.artifacts.file_kinds import SHARDED_INDEX
from boxcar.shared.disk import regular_file
from boxcar.shared.errors import DamagedError
from boxcar.training.load_check import checkpoints, torch_files
from boxcar.training.load_check.refusals import How
from boxcar.training.load_check.survey import missing_keys, tree_leaves

_NAMED_PIECES = 10


def look_at_index(path: Path, keys: Sequence[str], how: How) -> tuple[list[str], dict[str, Any]]:
    """The whole checkpoint in the folder of this `.metadata`."""
    names = checkpoints.listed(torch_files.torch_names_in(path), how)
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
        problems.append("holds nothing: no tensor and no value")
    facts = survey.facts | names | ({"unlooked": unlooked[:_NAMED_PIECES]} if unlooked else {})
    return [*survey.problems, *problems[:_NAMED_PIECES]], facts


def look_at_shard(path: Path, _: Sequence[str], __: How) -> tuple[list[str], dict[str, Any]]:
    """A shard says nothing without its index, whose look covers it."""
    if path.with_name(SHARDED_INDEX).is_file():
        return [], {}
    return [f"is a part of a sharded checkpoint, whose {SHARDED_INDEX} is not beside it"], {}


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
                yield f"{name} lies in no shard"
            continue
        if missing := [chunk for chunk in chunks if (name, _at(chunk.offsets)) not in stored]:
            yield f"{name} lacks {len(missing)} of its {len(chunks)} pieces"
        elif sum(math.prod(chunk.sizes) for chunk in chunks) < math.prod(saved.size):
            yield f"{name} lacks a piece: its shards hold less than its shape {tuple(saved.size)}"


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
            problems.append(f"{name} in {info.relative_path} cannot be loaded ({said})")
            continue
        if problem := _unlike(value, index, metadata.state_dict_metadata.get(name)):
            problems.append(f"{name} in {info.relative_path} {problem}")
        yield from ((f"{name}.{path}" if path else name, leaf) for path, leaf in tree_leaves(value))


def _piece(folder: Path, info: Any, how: How) -> Any:
    with regular_file.open_left(folder, info.relative_path) as file:
        file.seek(info.offset)
        data = file.read(max(0, info.length))
    if len(data) < info.length:
        raise DamagedError(f"truncated: {len(data)} of its {info.length} bytes are there")
    return torch_files.load_torch(io.BytesIO(data), how)


def _unlike(value: Any, index: Any, saved: Any) -> str | None:
    """Where a piece has another shape than the index says."""
    sizes = [c.sizes for c in getattr(saved, "chunks", ()) if _at(c.offsets) == _at(index.offset)]
    if not sizes:
        return None
    found = tuple(getattr(value, "shape", ()))
    return (
        None if found == tuple(sizes[0]) else f"has the shape {found}, expected {tuple(sizes[0])}"
    )
