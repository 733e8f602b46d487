"""The shards of a latent cache: safetensors files that every process maps and nobody copies.

`safe_open` maps a file privately and its tensors are views of the map (seen in /proc/self/smaps),
so all ranks and workers read the same pages of the page cache. What leaves this module is a copy of
the rows that were asked for: a view that somebody changes in place would stay changed for the rest
of that process's life.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, InputError
from boxcar.training.cache.cache_index import Index, ShardRecord, TensorSpec, shard_name

SINGLE = "value"
_RESERVED = "__metadata__"

Tensors = dict[str, torch.Tensor]


def take_apart(batch: Any, samples: int) -> tuple[str, Tensors]:
    """What an encoder gave for `samples` samples: structure, and tensors [samples, ...] by name.

    Raises InputError for anything but a tensor, or a tuple, list or dict of tensors.
    """
    if isinstance(batch, torch.Tensor):
        structure, tensors = "tensor", {SINGLE: batch}
    elif isinstance(batch, Mapping):
        structure, tensors = "dict", dict(batch)
    elif isinstance(batch, (tuple, list)):
        structure = "tuple" if isinstance(batch, tuple) else "list"
        tensors = {str(place): value for place, value in enumerate(batch)}
    else:
        structure, tensors = type(batch).__name__, {}
    if not tensors or not all(_is_batched(*item, samples) for item in tensors.items()):
        raise InputError(
            f"the encoder is expected to give a tensor, or a tuple, list or dict (by text) of "
            f"tensors, each with {samples} samples along its first dimension; found "
            f"{_described(batch)}"
        )
    return structure, tensors


def rows_of(structure: str, names: list[str], columns: Sequence[Sequence[Any]]) -> list[Any]:
    """The samples of a batch whose tensors are taken apart by rows: columns[tensor][sample]."""
    if structure == "tensor":
        return list(columns[0])
    rows = zip(*columns, strict=True)
    if structure == "dict":
        return [dict(zip(names, row, strict=True)) for row in rows]
    return list(rows) if structure == "tuple" else [list(row) for row in rows]


def specs_of(tensors: Tensors) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(name, str(value.dtype).removeprefix("torch."), tuple(value.shape[1:]))
        for name, value in tensors.items()
    )


def sample_bytes(tensors: Tensors) -> int:
    return sum(value[:1].numel() * value.element_size() for value in tensors.values())


def to_bytes(tensors: Tensors) -> bytes:
    """One shard's file. Raises InputError for a dtype that safetensors cannot hold."""
    from safetensors.torch import save

    try:
        return save({name: value.contiguous() for name, value in tensors.items()})
    except (KeyError, TypeError, ValueError) as error:
        kinds = {name: str(value.dtype) for name, value in tensors.items()}
        raise InputError(f"safetensors cannot hold what the encoder gave, {kinds}") from error


def problem_of(folder: Path, record: ShardRecord) -> str:
    """What is wrong with a shard of the index, in words; '' where every byte is as written."""
    path = folder / shard_name(record.number)
    try:
        size_bytes = path.stat().st_size
        if size_bytes != record.size_bytes:
            return f"{size_bytes} bytes instead of {record.size_bytes}"
        # Read in order, which also brings it into the page cache before the first random read.
        is_same = digest.of_file(path) == record.sha256
    except FileNotFoundError:
        return "not there"
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return "" if is_same else "its SHA-256 is not that of the index"


class ShardReader:
    """The samples of a complete cache. Each process maps a shard when it first needs it.

    `is_preloaded` reads all of it into this process's own memory instead.
    """

    def __init__(self, folder: Path, index: Index, *, is_preloaded: bool = False) -> None:
        self.folder, self.index = folder, index
        self._opened: dict[int, Tensors] = {}
        if is_preloaded:
            for number in range(index.shard_count):
                opened = self._map(number)
                self._opened[number] = {name: view.clone() for name, view in opened.items()}

    def __getstate__(self) -> dict[str, Any]:
        # Pickled tensors travel through /dev/shm. A spawned worker maps the files itself.
        return {"folder": self.folder, "index": self.index, "_opened": {}}

    def sample(self, number: int) -> Any:
        """One sample, a copy of its row."""
        shard, row = divmod(number, self.index.samples_per_shard)
        views = self._open(shard)
        columns = [[view[row].clone()] for view in views.values()]
        return rows_of(self.index.structure, list(views), columns)[0]

    def samples(self, numbers: Sequence[int]) -> list[Any]:
        """These samples in this order: rows of one tensor for the batch, gathered in one call."""
        if not numbers:
            return []
        # With a few rows of each of many shards this is faster than an index_select for each.
        places = [divmod(number, self.index.samples_per_shard) for number in numbers]
        columns = [
            torch.stack([self._open(shard)[spec.name][row] for shard, row in places]).unbind(0)
            for spec in self.index.tensors
        ]
        return rows_of(self.index.structure, [spec.name for spec in self.index.tensors], columns)

    def _open(self, number: int) -> Tensors:
        if number not in self._opened:
            self._opened[number] = self._map(number)
        return self._opened[number]

    def _map(self, number: int) -> Tensors:
        from safetensors import SafetensorError, safe_open

        path = self.folder / shard_name(number)
        try:
            with safe_open(path, framework="pt") as file:
                views = {spec.name: file.get_tensor(spec.name) for spec in self.index.tensors}
        except (SafetensorError, OSError) as error:
            raise DamagedError(
                f"{path}: this shard was whole when the cache was filled, and cannot be opened "
                f"now: {error}; fill() encodes it again"
            ) from error
        expected = len(self.index.span(number))
        for spec in self.index.tensors:
            if tuple(views[spec.name].shape) != (expected, *spec.shape):
                raise DamagedError(
                    f"{path}: {spec.name!r} is expected to be {(expected, *spec.shape)}, found "
                    f"{tuple(views[spec.name].shape)}"
                )
        return views


def _is_batched(name: object, value: Any, samples: int) -> bool:
    if not isinstance(name, str) or name == _RESERVED:
        return False
    return isinstance(value, torch.Tensor) and value.dim() > 0 and len(value) == samples


def _described(batch: Any) -> str:
    if isinstance(batch, torch.Tensor):
        return f"a tensor {tuple(batch.shape)}"
    if isinstance(batch, Mapping):
        inner = ", ".join(f"{name}: {_described(value)}" for name, value in batch.items())
        return f"a dict of {{{inner}}}"
    if isinstance(batch, (tuple, list)):
        return f"a {type(batch).__name__} of ({', '.join(_described(value) for value in batch)})"
    return type(batch).__name__
