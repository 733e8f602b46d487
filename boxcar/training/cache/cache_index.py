"""The index of a latent cache, its shards, and the fingerprint that names its folder.

    CACHE/<digest of the fingerprint>/index.json
                                      shard-00000.safetensors ...

The index is written whole after each shard, so it names exactly the shards that are whole.
"""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch

from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import codec
from boxcar.training import torch_private

FILE = "index.json"


@dataclass(frozen=True)
class Fingerprint:
    """What decides the latents: the encoder, the transform before it, and the raw data.

    Each part is a text, usually a digest. Where one of them changes, another folder is used.
    """

    encoder: str
    transform: str
    data: str

    @classmethod
    def of(cls, *, encoder: Any, transform: Any, data: Any) -> Fingerprint:
        """The fingerprint of real things.

        `encoder`: a module (its weights, classes and settings), or a text.
        `transform`: a text, or parameters that JSON can hold; code is no parameter, so give its
        source or a version. `data`: a text, or a Path or several (files and folders, of which
        every byte is read; names count, places do not). Raises InputError for anything else.
        """
        is_module = isinstance(encoder, torch.nn.Module)
        return cls(
            encoder=_of_module(encoder) if is_module else _of_text("encoder", encoder),
            transform=_of_parameters(transform),
            data=_of_text("data", data) if isinstance(data, str) else _of_files(data),
        )

    @property
    def digest(self) -> str:
        """The folder's name. Raises InputError for a part that is empty or no text."""
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, str) or not value.strip():
                raise InputError(
                    f"the fingerprint's {name} is expected to be a text that changes when the "
                    f"{name} does, found {value!r}; Fingerprint.of(...) makes it"
                )
        return digest.of_json(dataclasses.asdict(self))


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of a sample: its name in the shards, dtype (`float32`), and shape per sample."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ShardRecord:
    """One whole shard, the file `shard-<number, five digits>.safetensors`."""

    number: int
    samples: int
    size_bytes: int
    sha256: str
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Index:
    FORMAT: ClassVar[str] = "latent-cache"
    VERSION: ClassVar[int] = 1

    fingerprint: Fingerprint
    samples: int
    samples_per_shard: int
    structure: str
    """What a sample is: `tensor`, `tuple`, `list` or `dict` of the tensors, in their order."""
    sample_bytes: int
    tensors: tuple[TensorSpec, ...]
    shards: tuple[ShardRecord, ...] = ()
    """Those that are whole, by number; where one is missing, the cache is not complete."""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def shard_count(self) -> int:
        return -(-self.samples // self.samples_per_shard)

    @property
    def missing(self) -> list[int]:
        there = {shard.number for shard in self.shards}
        return [number for number in range(self.shard_count) if number not in there]

    @property
    def missing_bytes(self) -> int:
        return sum(len(self.span(number)) for number in self.missing) * self.sample_bytes

    @property
    def cache_bytes(self) -> int:
        return self.samples * self.sample_bytes

    def span(self, number: int) -> range:
        """The samples of one shard."""
        begin = number * self.samples_per_shard
        return range(begin, min(begin + self.samples_per_shard, self.samples))

    def having(self, shard: ShardRecord) -> Index:
        kept = [other for other in self.shards if other.number != shard.number]
        return self._with([*kept, shard])

    def lacking(self, numbers: Iterable[int]) -> Index:
        gone = set(numbers)
        return self._with([shard for shard in self.shards if shard.number not in gone])

    def _with(self, shards: list[ShardRecord]) -> Index:
        return dataclasses.replace(
            self, shards=tuple(sorted(shards, key=lambda shard: shard.number))
        )


def shard_name(number: int) -> str:
    return f"shard-{number:05d}.safetensors"


def read(folder: Path) -> Index:
    """Raises FileNotFoundError, or DamagedError for a file that is no index of this folder."""
    path = folder / FILE
    index = codec.from_document(Index, path.read_bytes(), str(path))
    numbers = [shard.number for shard in index.shards]
    is_sound = (
        index.samples > 0
        and index.samples_per_shard > 0
        and index.sample_bytes >= 0
        and numbers == sorted(set(numbers))
        and set(numbers) <= set(range(index.shard_count))
        and all(shard.samples == len(index.span(shard.number)) for shard in index.shards)
    )
    if not is_sound:
        raise DamagedError(f"{path}: its numbers contradict each other")
    if digest.of_json(dataclasses.asdict(index.fingerprint)) != folder.name:
        raise DamagedError(
            f"{path}: this index belongs to another cache than the one its folder is named after"
        )
    return index


def write(folder: Path, index: Index) -> None:
    """Raises OSError."""
    atomic.write_whole(folder / FILE, codec.to_document(index))


def _of_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(
            f"the fingerprint's {name} is expected to be a text or what it can be read from, "
            f"found {type(value).__name__}"
        )
    return value


def _of_parameters(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return digest.of_json(value)
    except (TypeError, ValueError):
        raise InputError(
            f"the fingerprint's transform is expected to be a text or parameters that JSON can "
            f"hold, found {type(value).__name__}; for code give its source or a version"
        ) from None


def _of_files(value: Any) -> str:
    paths = [value] if isinstance(value, Path) else list(value)
    if not paths or not all(isinstance(path, Path) for path in paths):
        raise InputError(
            "the fingerprint's data is expected to be a text, a Path or several Paths, "
            f"found {value!r}"
        )
    return digest.of_json([entry for path in paths for entry in _entries(path)])


def _entries(path: Path) -> list[list[str]]:
    if path.is_dir():
        inner = sorted(each for each in path.rglob("*") if each.is_file())
        return [[each.relative_to(path).as_posix(), digest.of_file(each)] for each in inner]
    try:
        return [[path.name, digest.of_file(path)]]
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; the fingerprint reads it") from None


def _of_module(module: torch.nn.Module) -> str:
    # What torch.compile wraps has the same weights under other names.
    module = torch_private.inside_compiled(module) or module
    sha = hashlib.sha256()
    for name, inner in module.named_modules():
        # An address in a setting's text would be another one in each process.
        settings = re.sub(r" at 0x[0-9a-f]+", "", inner.extra_repr())
        sha.update(f"{name}:{type(inner).__qualname__}({settings})\n".encode())
    for name, value in module.state_dict().items():
        if isinstance(value, torch.Tensor):
            sha.update(f"{name}:{value.dtype}{tuple(value.shape)}\n".encode())
            sha.update(_bytes_of(value))
    return sha.hexdigest()


def _bytes_of(value: torch.Tensor) -> Any:
    """The tensor's memory, without a copy where it lies on the CPU, and without NumPy."""
    flat = value.detach().cpu().contiguous()
    size_bytes = flat.numel() * flat.element_size()
    if not size_bytes:
        return b""
    view = (ctypes.c_ubyte * size_bytes).from_address(flat.data_ptr())
    view.keeps = flat  # type: ignore[attr-defined]
    return view


# --- The shards of a latent cache: safetensors files that every process maps and nobody copies.
# `safe_open` maps a file privately and its tensors are views of the map (seen in /proc/self/smaps),
# so all ranks and workers read the same pages of the page cache. What leaves this module is a copy
# of the rows that were asked for: a view that somebody changes in place would stay changed for the
# rest of that process's life.


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
