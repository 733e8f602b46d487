"""A loader whose batches are exactly known: by rank, by epoch, and after a kill.

    loader = RankAwareDataLoader(dataset, config, batch_size=32, num_workers=6)
    for epoch in range(loader.epoch, epochs):
        for inputs, targets in loader:
            ...
    state = loader.state_dict()      # after which batch we are; load_state_dict goes on from there

What it promises: no sample twice or lost in an epoch over all ranks (sampler.py), draws that depend
on seed, epoch and sample alone (sample_seeds.py), batches that fit through a small /dev/shm
(worker_transport.py), streams (stream.py), the same number of batches on every rank.

**Position.** A batch is done when it was given to the loop. `iter` goes on at the position, in the
middle of an epoch too: after a `break`, the next loop has the rest of the epoch, and `set_epoch`
of another epoch leaves it. So `next(iter(loader))` takes a batch out of the epoch; to see one, take
`dataset[0]`. When the epoch is at its end, the loop ends and the position is the start of the next
epoch. A newer loop ends an older one with an InputError at its next batch.

Not covered: `batch_size=None`, own samplers.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from boxcar.shared.errors import InputError
from boxcar.training import data_order, run_manifest, stall, torch_private
from boxcar.training.data import sample_seeds
from boxcar.training.data.sample_seeds import SeededSamples, draws_nothing
from boxcar.training.data.sampler import EpochSampler, IndexSampler, RankSampler, Shares
from boxcar.training.data.stream import (
    Ended,
    StreamReader,
    StreamShares,
    TurnSampler,
    shards_itself,
)
from boxcar.training.data.worker_transport import Room, WorkerTransport, free_shared_bytes
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.reporting.say import say_on_main

# --- A key becomes a batch, in a worker or the main process, whose generators stay as they were.


class Batches(Dataset[Any]):
    """What the workers hold."""

    def __init__(self, source: SeededSamples | StreamReader, transport: WorkerTransport) -> None:
        self.source, self.transport = source, transport
        self._has_read = False  # in this process, of samples that are not seeded

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_has_read": False}

    def __getitems__(self, key: Any) -> Any:
        if self.source.is_seeded:
            with contextlib.nullcontext() if get_worker_info() else sample_seeds.own_draws():
                return self._batch(key)
        if self._has_read:
            return self._batch(key)
        before = sample_seeds.generator_states()
        batch = self._batch(key)
        self._refuse_what_drew(before)
        self._has_read = True
        return batch

    def _batch(self, key: Any) -> Any:
        samples = self.source.read(key)
        return samples if isinstance(samples, Ended) else self.transport(samples)

    def _refuse_what_drew(self, before: dict[str, Any]) -> None:
        drawn = [
            name for name, state in sample_seeds.generator_states().items() if state != before[name]
        ]
        if drawn:
            raise InputError(
                f"{type(self.source.dataset).__name__} declares draws_nothing, but reading it drew "
                f"from {', '.join(drawn)}: a resumed training would draw differently. Take "
                "draws_nothing out"
            )


_AHEAD = 2  # torch's own default
_GRACE_S = 60


class RankAwareDataLoader:
    """This rank's batches of a dataset, epoch after epoch.

    `batch_size` is per rank; None: the config's, else 1, as torch has it. `rank` and `world` are
    those of the joined process group; given, they are taken as they are (`rank=0, world=1`: the
    whole dataset in this process, for a validation on one rank), and a config of strategy "single"
    says the same. `uneven` is join, drop or pad (sampler.py); None: join, and drop for a stream,
    which another number of ranks could not go on with otherwise. Batches are pinned where there is
    CUDA. Workers live until `close`, or until the loader is let go. Raises InputError where a value
    is wrong, and at the start of an epoch where the ranks' loaders differ.
    """

    def __init__(
        self,
        dataset: Any,
        config: DistributedConfig | None = None,
        *,
        batch_size: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        num_workers: int = 0,
        prefetch_factor: int | None = None,
        uneven: str | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool | None = None,
        multiprocessing_context: Any = None,
        rank: int | None = None,
        world: int | None = None,
    ) -> None:
        _refuse_another(config)
        rank, world, local_ranks = _who(config, rank, world)
        if batch_size is None:
            batch_size = _batch_size(config)
        ahead = _AHEAD if prefetch_factor is None else prefetch_factor
        room = Room(free_shared_bytes(), num_workers, ahead, local_ranks)
        self.dataset, self.batch_size = dataset, batch_size
        source: SeededSamples | StreamReader
        if isinstance(dataset, IterableDataset):
            workers, how = max(1, num_workers), uneven or "drop"
            parts = StreamShares(batch_size, rank, world, workers, how, shards_itself(dataset))
            self._sampler: EpochSampler = TurnSampler(parts, seed=seed)
            source = StreamReader(dataset, parts, seed)
        else:
            shares = Shares(_length(dataset), batch_size, rank, world, uneven or "join")
            self._sampler = RankSampler(shares, seed=seed, shuffle=shuffle)
            # What makes a batch of samples that draw nothing may draw as well.
            is_seeded = collate_fn is not None or not draws_nothing(dataset)
            source = SeededSamples(dataset, seed, is_seeded=is_seeded)
            _say_uneven(shares, shuffle)
        self._loader = _EpochLoader(
            Batches(source, WorkerTransport(collate_fn, room)),
            self._sampler,
            agrees=world > 1 and dist.is_initialized() and world == dist.get_world_size(),
            num_workers=num_workers,
            prefetch_factor=ahead if num_workers else None,
            persistent_workers=num_workers > 0,
            pin_memory=torch.cuda.is_available() if pin_memory is None else pin_memory,
            multiprocessing_context=multiprocessing_context,
            worker_init_fn=_outlive_sigterm,
        )
        _record(self._sampler.identity())

    def __iter__(self) -> Iterator[Any]:
        """The rest of the epoch, from the position on."""
        return iter(self._loader)

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank; TypeError for a stream, which has no length."""
        return len(self._loader)

    @property
    def epoch(self) -> int:
        """The epoch that is under way, or the next one."""
        return self._sampler.epoch

    @property
    def batches_done(self) -> int:
        """Batches of this epoch that the loop was given: not 0 where a resume goes on within it."""
        return self._sampler.batches_done

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch; nothing happens where it is under way already.

        Nobody has to: an epoch follows the other by itself.
        """
        self._sampler.set_epoch(epoch)

    def get_sampler(self) -> IndexSampler:
        """This rank's indices, which a DataLoader of torch's own takes as `sampler=`.

        InputError for a stream, which has none.
        """
        if not isinstance(self._sampler, RankSampler):
            raise InputError("get_sampler: a stream has no indices; iterate over the loader itself")
        return IndexSampler(self._sampler, self.dataset)

    def get_loader(self) -> DataLoader[Any]:
        """torch's loader underneath. To iterate over it is to iterate over this one."""
        return self._loader

    def state_dict(self) -> dict[str, Any]:
        """The position after the batch last given to the loop, and what must be equal to go on.

        Plain numbers, truths and words: epoch, batches_done, seed, global_batch, ... The same on
        every rank.
        """
        return self._sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with exactly the next batch; InputError where that is not possible.

        Another number of ranks is possible where the global batch (ranks x batch_size) is the same.
        """
        self._sampler.load_state_dict(state)

    def close(self) -> None:
        """End the workers. A later loop starts new ones."""
        self._loader.end_workers()


class _EpochLoader(DataLoader[Any]):
    """torch's loader that counts what it gives."""

    def __init__(
        self, batches: Batches, sampler: EpochSampler, *, agrees: bool, **options: Any
    ) -> None:
        self._position, self._agrees = sampler, agrees
        _alive.add(self)
        super().__init__(
            batches,
            batch_sampler=sampler,
            collate_fn=_as_it_is,
            # Its own, or each `iter` would draw from the model's generator; a resume is one more.
            generator=torch.Generator(),
            **options,
        )

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        self._position.loop += 1
        return self._epoch(self._position.loop)

    def __len__(self) -> int:
        if isinstance(self._position, TurnSampler):
            raise TypeError("a stream has no length")
        return len(self._position)  # type: ignore[arg-type]

    def end_workers(self) -> None:
        self._position.loop += 1
        iterator, self._iterator = self._iterator, None
        torch_private.end_workers(iterator)

    def _epoch(self, loop: int) -> Iterator[Any]:
        position = self._position
        self._refuse_an_old(loop)
        if self._agrees:
            check_ranks_agree({"batches": _count(position), **position.state_dict()})
        batches = self._batches()
        if isinstance(position, TurnSampler):
            batches = self._until_ended(batches, position)
        is_noted = data_order.is_noted()
        for batch in batches:
            done = position.batches_done
            if is_noted:
                data_order.note(position.epoch, done, position.indices(done))
            position.batches_done += 1
            stall.beat()
            yield batch
            self._refuse_an_old(loop)
        position.move_to(position.epoch + 1, 0)

    def _batches(self) -> Iterator[Any]:
        if self.num_workers or self.pin_memory:
            return super().__iter__()
        # As torch's iterator does it here, which notes each batch for a profiler: 5 us.
        return map(self.dataset.__getitems__, self._position)  # type: ignore[attr-defined]

    def _refuse_an_old(self, loop: int) -> None:
        # Checked before the next batch is taken: workers that stay alive serve the newer loop.
        if self._position.loop != loop:
            raise InputError(
                "this loop over the loader is outdated: a newer loop, set_epoch, "
                "load_state_dict or close has moved its position; make a second "
                "RankAwareDataLoader to read a dataset twice at once"
            )

    def _until_ended(self, turns: Iterator[Any], position: TurnSampler) -> Iterator[Any]:
        ended, workers = 0, position.shares.num_workers
        for turn, batch in enumerate(turns, position.first_turn):
            if turn < position.batches_done:
                continue
            # All ranks leave the epoch at the same turn, also where their streams differ.
            is_end = isinstance(batch, Ended)
            if ranks.agree_any(is_end) if self._agrees else is_end:
                ended += 1
                position.batches_done += 1
                if ended == workers:
                    return
            else:
                ended = 0
                yield batch


def _as_it_is(batch: Any) -> Any:
    return batch


_alive: weakref.WeakSet[_EpochLoader] = weakref.WeakSet()


@atexit.register
def _end_all_workers() -> None:
    """Before multiprocessing's own hook, whose SIGTERM they outlive, and which waits for them."""
    for loader in list(_alive):
        loader.end_workers()


_recorded: list[dict[str, Any]] = []


def _record(identity: Mapping[str, Any]) -> None:
    """In training.json: one entry for each loader that differs, in the order they were made."""
    facts = {name: identity[name] for name in ("seed", "uneven", "global_batch")}
    if facts not in _recorded:
        _recorded.append(facts)
    run_manifest.record(loaders=_recorded)


def _outlive_sigterm(worker: int) -> None:
    """A platform that stops a box tells every process, and torch's workers would die of it at once:
    the rank could not take its last step before it saves."""
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(_GRACE_S))


def check_ranks_agree(mine: Mapping[str, Any]) -> None:
    """InputError on every rank where the loaders differ. A collective."""
    of_rank: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(of_rank, dict(mine))
    if problem := differing(of_rank):
        raise InputError(problem)


def differing(of_rank: list[Mapping[str, Any]]) -> str:
    """What is not the same on all ranks, in a sentence, empty where all is; pure."""
    names = [name for name in of_rank[0] if len({values.get(name) for values in of_rank}) > 1]
    if not names:
        return ""
    # Another number of samples has another order.
    names = [name for name in names if name != "order"] or names
    found = "; ".join(
        f"{name} "
        + ", ".join(f"{values.get(name)} on rank {n}" for n, values in enumerate(of_rank))
        for name in names
    )
    return (
        f"the ranks' loaders differ, and would hang where the first one ends: {found}. Give every "
        "rank the same whole dataset and the same settings; the loader takes this rank's share"
    )


def _count(position: EpochSampler) -> int | None:
    return len(position) if isinstance(position, RankSampler) else None


def _refuse_another(config: Any) -> None:
    if config is not None and not isinstance(config, DistributedConfig):
        raise InputError(
            "RankAwareDataLoader(dataset, config): the second is a DistributedConfig, found "
            f"{config!r}; a batch size is batch_size="
        )


def _batch_size(config: DistributedConfig | None) -> int:
    if config is not None and config.batch_size is not None:
        config.check()
        return config.batch_size
    say_on_main(
        "loader: a batch is 1 sample, as torch has it: give batch_size= to the loader or the config"
    )
    return 1


def _who(
    config: DistributedConfig | None, rank: int | None, world: int | None
) -> tuple[int, int, int]:
    """(rank, world, ranks on this node)."""
    if (rank is None) != (world is None):
        raise InputError(f"give both rank and world, or none; found rank={rank}, world={world}")
    me = ranks.current()
    # The others on this node need room in /dev/shm, whether they have been met or not.
    local_ranks = max(me.local_world, int(os.environ.get("LOCAL_WORLD_SIZE") or 1))
    if rank is not None and world is not None:
        return rank, world, local_ranks
    if config is not None and config.strategy == "single":
        return 0, 1, local_ranks
    _refuse_the_unjoined(me.world)
    return me.rank, me.world, local_ranks


def _refuse_the_unjoined(world: int) -> None:
    started = os.environ.get("WORLD_SIZE", "1")
    if world == 1 and started not in ("", "1"):
        raise InputError(
            f"WORLD_SIZE is {started}, but this process has not joined the others, and each would "
            "see every sample: call ranks.join(config) before the loader is made"
        )


def _length(dataset: Any) -> int:
    try:
        return len(dataset)
    except TypeError as error:
        raise InputError(
            f"{type(dataset).__name__} has no length: a dataset has __len__ and __getitem__, and a "
            "stream is a torch.utils.data.IterableDataset"
        ) from error


def _say_uneven(shares: Shares, shuffle: bool) -> None:
    if shares.rank != 0:
        return
    batch = f"a global batch of {shares.global_batch}"
    if shares.left_out:
        which = "others in each epoch" if shuffle else "always the last"
        say_on_main(
            f"loader: {shares.left_out} of {shares.samples} samples fill no {batch[2:]} and are "
            f"left out, {which} (uneven='drop')"
        )
    if shares.repeated:
        say_on_main(
            f"loader: {shares.repeated} of {shares.samples} samples come twice in each epoch, to "
            f"fill {batch} (uneven='pad')"
        )
