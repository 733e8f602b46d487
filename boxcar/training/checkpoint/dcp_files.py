"""DCP's files: its `.metadata`, read without trust, and the writer that knows their checksums.

DCP's own reader unpickles `.metadata` and every plain value, and a pickle is a program. Here only
the classes that describe tensors may be named, and plain values are loaded with weights_only.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.distributed.checkpoint import (
    DefaultLoadPlanner,
    DefaultSavePlanner,
    FileSystemReader,
    FileSystemWriter,
)
from torch.distributed.checkpoint.filesystem import FileSystem
from torch.distributed.checkpoint.metadata import (
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, InputError
from boxcar.training import torch_private
from boxcar.training.checkpoint import checkpoint_file
from boxcar.training.checkpoint.archive_sum import ArchiveSum

_OF_METADATA = (
    *("BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta"),
    *("TensorProperties", "TensorStorageMetadata"),
)
_ALLOWED = {("torch.distributed.checkpoint.metadata", name) for name in _OF_METADATA} | {
    *torch_private.METADATA_NAMES,
    ("torch", "Size"),
    ("collections", "OrderedDict"),
    ("pathlib", "PosixPath"),
    ("pathlib._local", "PosixPath"),  # Python 3.13
}
_MOST_PROBLEMS = 12


def read_metadata(path: Path, names: set[str]) -> Metadata:
    """The metadata of a checkpoint whose files are `names`. Raises DamagedError, runs nothing."""
    try:
        with path.open("rb") as file:
            metadata = _Unpickler(file).load()
    except DamagedError as error:
        raise DamagedError(f"{path}: {error}") from None
    # Damaged bytes raise nearly anything.
    except Exception as error:
        raise DamagedError(f"{path}: cannot be read: {error}") from error
    if not isinstance(metadata, Metadata) or not isinstance(metadata.storage_data, dict):
        raise DamagedError(f"{path}: expected the metadata of a checkpoint")
    elsewhere = {info.relative_path for info in metadata.storage_data.values()} - names
    if elsewhere:
        raise DamagedError(f"{path}: names the file {min(elsewhere)!r}, not one of this checkpoint")
    return metadata


def differing_entries(state_dict: dict[str, Any], metadata: Metadata) -> list[str]:
    """Why the checkpoint does not fit the top-level keys of `state_dict`; empty where it does."""
    planner = PlainLoads()
    planner.set_up_planner(state_dict, metadata, False)
    wanted, saved = planner.state_dict, metadata.state_dict_metadata
    asked = tuple(state_dict)
    unexpected = [
        key
        for key in saved
        if key not in wanted and any(key == top or key.startswith(f"{top}.") for top in asked)
    ]
    problems = [f"missing in the checkpoint: {key}" for key in wanted if key not in saved]
    problems += [f"only in the checkpoint: {key}" for key in unexpected]
    for key in wanted:
        if key in saved:
            problems += _difference(key, wanted[key], saved[key])
    return _cut(problems)


def _difference(key: str, wanted: Any, saved: Any) -> list[str]:
    is_tensor = isinstance(wanted, torch.Tensor)
    if is_tensor != isinstance(saved, TensorStorageMetadata):
        kinds = ("a plain value", "a tensor")
        return [f"{key}: {kinds[not is_tensor]} in the checkpoint, {kinds[is_tensor]} here"]
    if not is_tensor:
        return []
    found, here = tuple(saved.size), tuple(wanted.shape)
    if found != here:
        return [f"{key}: shape {found} in the checkpoint, {here} here"]
    if saved.properties.dtype != wanted.dtype:
        return [f"{key}: {saved.properties.dtype} in the checkpoint, {wanted.dtype} here"]
    return []


def _cut(problems: list[str]) -> list[str]:
    more = len(problems) - _MOST_PROBLEMS
    return problems if more <= 1 else [*problems[:_MOST_PROBLEMS], f"and {more} more"]


class Reader(FileSystemReader):
    """DCP's reader, with metadata that was checked before DCP asks for it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._metadata_path = folder / ".metadata"

    def check(self, names: set[str]) -> Metadata:
        """Read the metadata of a checkpoint whose files are `names`. Raises DamagedError."""
        self._checked = read_metadata(self._metadata_path, names)
        storage = getattr(self._checked, "storage_meta", None) or StorageMeta()
        storage.load_id = self.load_id
        self._checked.storage_meta = storage
        return self._checked

    def read_metadata(self, *_: Any, **__: Any) -> Metadata:
        return self._checked


class PlainLoads(DefaultLoadPlanner):
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        # The default planner unpickles what it is given: it gets the same value pickled anew.
        super().load_bytes(read_item, _pickled(torch.load(value, weights_only=True)))


class PlainSaves(DefaultSavePlanner):
    """What could not be loaded again is refused while the value is still there."""

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        if write_item.type == WriteItemType.BYTE_IO:
            try:
                torch.load(_pickled(object), weights_only=True)
            except pickle.UnpicklingError:
                raise InputError(
                    f"{write_item.index.fqn}: a {type(object).__name__} cannot be kept in a "
                    "checkpoint; expected tensors, numbers, text, and lists and dicts of them"
                ) from None
        return super().transform_object(write_item, object)


def _pickled(value: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        is_dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if not is_dtype and (module, name) not in _ALLOWED:
            raise DamagedError(
                f"names {module}.{name}, which no checkpoint needs; it was not loaded"
            )
        return super().find_class(module, name)


# --- DCP's writer, whose files are on the disk when it ends, with checksums that it knows by then.
# What each rank wrote goes to rank 0 with what DCP itself sends there, and the checkpoint gets its
# name before DCP tells the ranks that all went well: no message more than DCP needs.


class Written(NamedTuple):
    """A file of the checkpoint."""

    name: str
    size_bytes: int
    crc32: int


class Writer(FileSystemWriter):
    """Calls `publish` with all files on rank 0, when all of them are on the disk."""

    def __init__(self, folder: Path, publish: Callable[[list[Written]], None]) -> None:
        # No copying ahead: in the thread it would open a CUDA context on GPU 0.
        super().__init__(folder, per_thread_copy_ahead=0, sync_files=False)
        self._folder, self._publish = folder, publish
        self.fs = self._files = _Files()

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        results = super().write_data(plan, planner).wait()
        ended: Future[list[WriteResult]] = Future()
        ended.set_result([*results, *map(_as_result, self._files.written)])
        return ended

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        files = [one.storage_data for of_rank in results for one in of_rank if _is_file(one)]
        known = len(self._files.written)
        of_dcp = [[one for one in of_rank if not _is_file(one)] for of_rank in results]
        super().finish(metadata, of_dcp)
        # Written under another name first.
        [index] = self._files.written[known:]
        self._publish([*files, index._replace(name=".metadata")])


class _Files(FileSystem):
    def __init__(self) -> None:
        self.written: list[Written] = []

    @contextlib.contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[Any]:
        archive = ArchiveSum()
        with checkpoint_file.create_torch_file(path, archive.add) as file:
            yield file
        crc32 = digest.crc32_of_file(Path(path)) if archive.crc32 is None else archive.crc32
        self.written.append(Written(Path(path).name, file.size_bytes, crc32))


def _as_result(written: Written) -> WriteResult:
    return WriteResult(MetadataIndex(written.name), written.size_bytes, written)


def _is_file(result: WriteResult) -> bool:
    return isinstance(result.storage_data, Written)
