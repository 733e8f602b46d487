"""Encode a dataset once and train on the latents, in a box whose /dev/shm is small.

    cache = LatentCache(
        "cache", dataset=raw, encoder=vae, batch_size=32, num_workers=6,
        fingerprint=Fingerprint.of(encoder=vae, transform="resize 64", data=Path("data/raw.h5")),
    )
    cache.fill()               # on every rank: one of the node encodes, the others wait
    train = cache.dataset()    # a torch Dataset of what the encoder gave

The latents lie in files that all ranks and workers map, so they are in memory once and not a byte
of them is in /dev/shm. docs/decisions/0017 has the reasons, docs/formats.md the files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, default_collate, get_worker_info

from boxcar.shared.errors import DamagedError, InputError
from boxcar.training import run_manifest
from boxcar.training.cache import cache_fill, cache_index
from boxcar.training.cache.cache_fill import Fill
from boxcar.training.cache.cache_index import Fingerprint, ShardReader, rows_of, take_apart
from boxcar.training.cache.memory_budget import MODES, ON_THE_FLY, PRELOADED, Choice
from boxcar.training.data.worker_transport import SHARED, Room, WorkerTransport, free_shared_bytes
from boxcar.training.ranks import ranks
from boxcar.training.reporting.say import say_on_main

__all__ = ["Fingerprint", "LatentCache"]

MIB = 1024 * 1024
# These wait for the other ranks in a forward pass, and one process of the node encodes.
_COLLECTIVE = ("DistributedDataParallel", "FSDP", "FullyShardedDataParallel")
_recorded: dict[str, Any] = {}


class LatentCache:
    """The latents of one dataset, in `folder/<digest of the fingerprint>/`."""

    def __init__(
        self,
        folder: Path | str,
        *,
        dataset: Dataset[Any],
        encoder: Callable[[Any], Any],
        fingerprint: Fingerprint,
        batch_size: int,
        num_workers: int = 0,
        shard_bytes: int = 64 * MIB,
        mode: str = "auto",
    ) -> None:
        """Nothing is read or written yet.

        `dataset`: raw samples by number; torch's default_collate makes the batches.
        `encoder`: gets such a batch on this rank's device, gives a tensor, or a tuple, list or dict
        of tensors, [batch, ...] each, alike for all samples. A module, or a method of one, is put
        into eval mode meanwhile; where it is any other function, that is up to you.
        `num_workers`: processes that read raw samples. `shard_bytes`: about the size of one file.
        `mode`: auto, or mapped, preloaded, on-the-fly. Raises InputError.
        """
        self._raw, self._encoder, self._fingerprint = dataset, encoder, fingerprint
        self._batch_size, self._num_workers = batch_size, num_workers
        self._shard_bytes, self._mode = shard_bytes, mode
        self.folder = Path(folder).absolute() / fingerprint.digest
        self.choice: Choice | None = None
        """How the latents are read and why; None before `fill`."""
        self._check()

    def fill(self) -> LatentCache:
        """Make the cache whole. All ranks call it, after `ranks.join`.

        A fill that was killed goes on at the first shard that is missing. One process of the node
        compares each shard that is there with its SHA-256; one that differs is named and encoded
        again. Raises NoRoomError, InputError.
        """
        me = ranks.current()
        self.choice = cache_fill.settle(
            Fill(
                folder=self.folder,
                fingerprint=self._fingerprint,
                samples=len(self._raw),  # type: ignore[arg-type]
                batch_size=self._batch_size,
                shard_bytes=self._shard_bytes,
                mode=None if self._mode == "auto" else self._mode,
                read=self._read,
                encode=lambda batch: self._encoder(moved(batch, me.device)),
                ready=lambda: ready(self._encoder, me.device),
                seed=lambda shard: _seeded(shard, me.device),
            )
        )
        self._tell(self.choice, me)
        return self

    def dataset(self) -> Dataset[Any]:
        """The latents, sample by sample as the encoder gave them, on the CPU. After `fill`.

        Raises InputError where the cache is not whole.
        """
        if self.choice is None:
            raise InputError(f"{self.folder}: fill() has not been called for this latent cache")
        if self.choice.mode == ON_THE_FLY:
            return EncodedOnTheFly(self._raw, self._encoder, ranks.current().device)
        index = cache_index.read(self.folder)
        if index.missing:
            raise DamagedError(
                f"{self.folder}: {len(index.missing)} shards have disappeared since fill()"
            )
        return CachedLatents(
            ShardReader(self.folder, index, is_preloaded=self.choice.mode == PRELOADED)
        )

    def _check(self) -> None:
        problems = []
        if not hasattr(self._raw, "__len__") or not hasattr(self._raw, "__getitem__"):
            problems.append("dataset: expected samples by number (__len__ and __getitem__)")
        elif not len(self._raw):
            problems.append("dataset: it has no samples")
        for name, value in (("batch_size", self._batch_size), ("shard_bytes", self._shard_bytes)):
            if value < 1:
                problems.append(f"{name}: expected at least 1, found {value}")
        if self._mode not in ("auto", *MODES):
            problems.append(f"mode: expected auto, {', '.join(MODES)}, found {self._mode!r}")
        if Path(SHARED) in self.folder.resolve().parents:
            problems.append(f"folder: {self.folder} is shared memory; choose one on a disk")
        module = module_of(self._encoder)
        for inner in module.modules() if module is not None else ():
            if type(inner).__name__.startswith(_COLLECTIVE):
                problems.append(
                    f"encoder: {type(inner).__name__} waits for the other ranks, and only one "
                    "process of the node encodes; pass the unwrapped module"
                )
                break
        if importlib.util.find_spec("safetensors") is None:
            problems.append("safetensors is not installed here, and the shards are its files")
        if problems:
            raise InputError(problems)

    def _read(self, batches: list[list[int]]) -> Iterable[Any]:
        # One process of the node reads.
        room = Room(free_shared_bytes(), self._num_workers, prefetch_factor=2, local_ranks=1)
        return DataLoader(
            self._raw,
            batch_sampler=batches,
            num_workers=self._num_workers,
            collate_fn=WorkerTransport(collated, room),
            # The global one would go on differently in a run that found the cache filled.
            generator=torch.Generator(),
        )

    def _tell(self, choice: Choice, me: ranks.Ranks) -> None:
        say_on_main(f"latent cache {self.folder}: {choice.mode}: {choice.reason}")
        # A cell may have several, one for each task.
        _recorded[self.folder.name] = {
            "mode": choice.mode,
            "reason": choice.reason,
            "fingerprint": dataclasses.asdict(self._fingerprint),
        }
        run_manifest.record(cache=_recorded)


class CachedLatents(Dataset[Any]):
    """Samples from shards. Cheap to send to workers: no tensor goes with it."""

    draws_nothing = True

    def __init__(self, reader: ShardReader) -> None:
        self._reader = reader

    def __len__(self) -> int:
        return self._reader.index.samples

    def __getitem__(self, number: int) -> Any:
        return self._reader.sample(range(len(self))[number])

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """A batch by numbers; torch's loader asks for these."""
        everything = range(len(self))
        return self._reader.samples([everything[number] for number in numbers])


class EncodedOnTheFly(Dataset[Any]):
    """The same samples without a cache: encoded whenever they are asked for."""

    def __init__(
        self, raw: Dataset[Any], encoder: Callable[[Any], Any], device: torch.device
    ) -> None:
        self._raw, self._encoder, self._device = raw, encoder, device
        if (module := module_of(encoder)) is not None:
            module.to(device)

    def __len__(self) -> int:
        return len(self._raw)  # type: ignore[arg-type]

    def __getitem__(self, number: int) -> Any:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        if self._device.type != "cpu" and get_worker_info() is not None:
            raise InputError(
                "the latent cache is encoded on the fly, on the GPU, which a loader's worker "
                "cannot use: give the training's loader num_workers=0, or the cache room on a disk"
            )
        everything = range(len(self))
        batch = collated([self._raw[everything[number]] for number in numbers])
        with ready(self._encoder, self._device):
            structure, tensors = take_apart(self._encoder(moved(batch, self._device)), len(numbers))
        columns = [value.cpu().unbind(0) for value in tensors.values()]
        return rows_of(structure, list(tensors), columns)


def collated(samples: list[Any]) -> Any:
    """A batch of raw samples. Raises InputError where they are not alike."""
    try:
        return default_collate(samples)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"raw samples cannot be made a batch for the encoder: {error}. Pad or crop them, and "
            "make them tensors, arrays or numbers, in the dataset"
        ) from error


def module_of(encoder: Any) -> torch.nn.Module | None:
    """The module that encodes: the encoder itself, or the one that it is a method of."""
    owner = encoder if isinstance(encoder, torch.nn.Module) else getattr(encoder, "__self__", None)
    return owner if isinstance(owner, torch.nn.Module) else None


@contextlib.contextmanager
def ready(encoder: Any, device: torch.device) -> Iterator[None]:
    """No gradients, and the encoder's module in eval mode on `device`; all is put back."""
    module = module_of(encoder)
    modes, homes = [], set()
    if module is not None:
        modes = [(inner, inner.training) for inner in module.modules()]
        homes = {value.device for value in (*module.parameters(), *module.buffers())}
    # One that is spread over devices on purpose stays where it is.
    home = homes.pop() if len(homes) == 1 else device
    try:
        if module is not None:
            module.eval()
            module = module.to(device) if home != device else module
        with torch.no_grad():
            yield
    finally:
        for inner, is_training in modes:
            inner.training = is_training
        if module is not None and home != device:
            module.to(home)


def moved(batch: Any, device: torch.device) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: moved(value, device) for name, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        values = [moved(value, device) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    return batch


@contextlib.contextmanager
def _seeded(shard: int, device: torch.device) -> Iterator[None]:
    is_cuda = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if is_cuda else []):
        # torch.manual_seed would seed GPUs that are not put back.
        torch.default_generator.manual_seed(shard)
        if is_cuda:
            torch.cuda.manual_seed(shard)
        yield
