"""Which samples each rank sees in an epoch, and how far the epoch has come.

The epoch's order depends on (seed, epoch) alone. Global batch k is a slice of it, and each rank
takes an equal share of the slice: so a run that goes on with another number of ranks, but the same
global batch, goes on exactly. Every rank has the same number of batches, whatever `uneven` is:

    join  nothing is left out or repeated: the samples at the end that fill no global batch are a
          last, smaller one, as torch has it, shared out as evenly as possible; fewer than there are
          ranks are added to the batch before, one to a rank
    drop  they are left out, others in each epoch
    pad   the last batch is filled up with samples from the start of the epoch's order

torch's `Join` context is not needed for any of them. It answers for a rank that has ended in DDP's
collectives alone: a metric, or the question whether to stop, would hang there, and FSDP too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DistributedSampler, Sampler

from boxcar.shared.errors import InputError
from boxcar.training.data.sample_seeds import seed_of

UNEVEN = ("join", "drop", "pad")
# The order is drawn from what would be sample -1's seed.
_ORDER = -1


@dataclass(frozen=True)
class Shares:
    """How `samples` are divided into global batches and these among ranks; pure arithmetic."""

    samples: int
    batch_size: int
    """Per rank."""
    rank: int
    world: int
    uneven: str

    @property
    def global_batch(self) -> int:
        """Samples in a step of all ranks together."""
        return self.batch_size * self.world

    @property
    def batches(self) -> int:
        """Batches in an epoch, the same on every rank."""
        full, rest = divmod(self.samples, self.global_batch)
        has_more = {"drop": False, "join": rest >= self.world, "pad": rest > 0}
        return full + has_more[self.uneven]

    @property
    def left_out(self) -> int:
        """Samples that an epoch does not use."""
        return self.samples % self.global_batch if self.uneven == "drop" else 0

    @property
    def repeated(self) -> int:
        """Samples that come twice in an epoch."""
        return -self.samples % self.global_batch if self.uneven == "pad" else 0

    def bounds(self, batch: int) -> slice:
        """This rank's part of the epoch's order in global batch number `batch`."""
        start = batch * self.global_batch
        is_open = self.uneven == "join" and batch == self.batches - 1
        stop = self.samples if is_open else start + self.global_batch
        share = share_of(stop - start, self.rank, self.world)
        return slice(start + share.start, start + share.stop)


def share_of(size: int, rank: int, world: int) -> slice:
    """A rank's share of `size` things; shares differ by one at most, and the first are larger."""
    each, extra = divmod(size, world)
    start = rank * each + min(rank, extra)
    return slice(start, start + each + (rank < extra))


def order_of(shares: Shares, seed: int, epoch: int, shuffle: bool) -> Tensor:
    """All indices of an epoch, int64 [samples + repeated]."""
    if shuffle:
        generator = torch.Generator().manual_seed(seed_of(seed, epoch, _ORDER))
        order = torch.randperm(shares.samples, generator=generator)
    else:
        order = torch.arange(shares.samples)
    repeats = -(-(shares.samples + shares.repeated) // shares.samples)
    return order.repeat(repeats)[: shares.samples + shares.repeated]


class EpochSampler(Sampler[Any]):
    """A position, (epoch, batches_done), and the keys of the batches from there on.

    The position counts what the training loop was given, not what workers have read ahead.
    """

    def __init__(self) -> None:
        self.epoch, self.batches_done = 0, 0
        # Another number than a loop began with: somebody else has moved the position since.
        self.loop = 0

    def identity(self) -> dict[str, Any]:
        """What must be equal where a saved position is to mean the same batch."""
        raise NotImplementedError

    def keys(self, epoch: int, batches_done: int) -> Iterator[Any]:
        """The keys of the epoch's batches after the first `batches_done`."""
        raise NotImplementedError

    def indices(self, batch: int) -> Any:
        """What this rank draws in a batch of the epoch, in numbers: for the note of a rehearsal."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        # Read now and not with the first key: workers are ahead of the position.
        return self.keys(self.epoch, self.batches_done)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch. The epoch that is under way already goes on where it is.

        So a loop that says `set_epoch(epoch)` at the top of each epoch is right after a resume too.
        """
        if epoch < 0:
            raise InputError(f"set_epoch: expected 0 or more, found {epoch}")
        if epoch != self.epoch:
            self.move_to(epoch, 0)

    def move_to(self, epoch: int, batches_done: int) -> None:
        """Take up another position; loops that run end with an error at their next batch."""
        self.epoch, self.batches_done = int(epoch), int(batches_done)
        self.loop += 1

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers, truths and words."""
        place = {"epoch": self.epoch, "batches_done": self.batches_done}
        return {**place, **self.identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on after the batch that `state` was taken after. Raises InputError, changing nothing.

        What must be equal is listed in `identity`; the number of ranks need not be.
        """
        if missing := {"epoch", "batches_done"} - set(state):
            raise InputError(f"not the state of a loader: {', '.join(sorted(missing))} missing")
        before = self.epoch, self.batches_done
        self.move_to(state["epoch"], state["batches_done"])
        if problems := self._problems(state):
            self.move_to(*before)
            raise InputError(problems)

    def _problems(self, state: Mapping[str, Any]) -> list[str]:
        here = self.identity()
        differing = {name: value for name, value in here.items() if state.get(name) != value}
        if "uneven" in differing and self.ends_evenly:
            del differing["uneven"]
        if "uneven" in differing:
            for follows in ("batches", "order", "parts"):
                differing.pop(follows, None)
        return [
            f"the loader was saved with {name}={state.get(name)!r}, and here it is {value!r}: "
            + self.advice(name, state)
            for name, value in differing.items()
        ]

    @property
    def ends_evenly(self) -> bool:
        """Whether the last global batch is full, so that `uneven` decides nothing."""
        return False

    def advice(self, name: str, state: Mapping[str, Any]) -> str:
        """How to make a value that differs equal again."""
        if name == "uneven":
            saved = state.get(name)
            return f"set uneven={saved!r} to go on as it was, or start from scratch"
        return f"give the loader the same {name}, or start from scratch"


class RankSampler(EpochSampler):
    """One rank's batches of a map-style dataset; a key is (epoch, indices)."""

    def __init__(self, shares: Shares, *, seed: int, shuffle: bool) -> None:
        super().__init__()
        if problem := _problem(shares):
            raise InputError(problem)
        self.shares, self.seed, self.shuffle = shares, seed, shuffle
        self._kept: tuple[int, Tensor] | None = None

    def __len__(self) -> int:
        """Batches in a whole epoch, the same on every rank."""
        return self.shares.batches

    @property
    def ends_evenly(self) -> bool:
        return self.shares.samples % self.shares.global_batch == 0

    def keys(self, epoch: int, batches_done: int) -> Iterator[tuple[int, list[int]]]:
        """(epoch, this rank's indices) of each batch that is still to come."""
        order = self._order(epoch)
        for batch in range(batches_done, self.shares.batches):
            yield epoch, order[self.shares.bounds(batch)].tolist()

    def indices(self, batch: int) -> Tensor:
        """Of samples, int64 [this rank's batch]."""
        return self._order(self.epoch)[self.shares.bounds(batch)]

    def identity(self) -> dict[str, Any]:
        """`order` is a checksum: another version of torch may shuffle in another way."""
        order = self._order(self.epoch)
        places = torch.arange(1, len(order) + 1)
        return {
            "seed": self.seed,
            "shuffle": self.shuffle,
            "uneven": self.shares.uneven,
            "samples": self.shares.samples,
            "global_batch": self.shares.global_batch,
            "batches": self.shares.batches,
            "order": int((order * places).sum()),
        }

    def advice(self, name: str, state: Mapping[str, Any]) -> str:
        """The batch size that makes a saved global batch, where one does."""
        saved, world = state.get("global_batch"), self.shares.world
        if name == "global_batch" and isinstance(saved, int) and saved % world == 0:
            return f"with {world} ranks set batch_size={saved // world}"
        if name == "order":
            changed = "the order that torch shuffles into has changed"
            return f"{changed}; resume with the version of torch that saved it"
        return super().advice(name, state)

    def _order(self, epoch: int) -> Tensor:
        if self._kept is None or self._kept[0] != epoch:
            self._kept = epoch, order_of(self.shares, self.seed, epoch, self.shuffle)
        return self._kept[1]


class IndexSampler(DistributedSampler[int]):
    """One rank's indices, for a loader of torch's own: `DataLoader(data, sampler=this, ...)`.

    As with any DistributedSampler, the loop says `set_epoch`, and no position is kept: that is what
    a RankAwareDataLoader is for. With the loader's batch size its batches are the loader's.
    """

    def __init__(self, batches: RankSampler, dataset: Any) -> None:
        shares = batches.shares
        super().__init__(
            dataset, shares.world, shares.rank, shuffle=batches.shuffle, seed=batches.seed
        )
        self._batches = batches

    def __iter__(self) -> Iterator[int]:
        for _, indices in self._batches.keys(self._batches.epoch, 0):
            yield from map(_Index, indices)

    def __len__(self) -> int:
        """Samples of this rank in an epoch."""
        bounds = map(self._batches.shares.bounds, range(len(self._batches)))
        return sum(bound.stop - bound.start for bound in bounds)

    def set_epoch(self, epoch: int) -> None:
        """The epoch whose order follows."""
        self._batches.set_epoch(epoch)


class _Index(int):
    """A number that says so, where a loader takes it for a batch of numbers."""

    def __iter__(self) -> Iterator[int]:
        raise InputError(
            "get_sampler() gives one index after the other: give it to DataLoader as sampler=, "
            "with batch_size=, and not as batch_sampler="
        )


def problem_of_ranks(batch_size: int, rank: int, world: int, uneven: str) -> str:
    """Why these cannot be, in a sentence; empty where they can."""
    if uneven not in UNEVEN:
        return f"uneven should be {', '.join(UNEVEN)}, found {uneven!r}"
    if batch_size < 1 or not 0 <= rank < world:
        return (
            f"expected batch_size 1 or more and a rank from 0 to world - 1, found batch_size="
            f"{batch_size}, rank={rank}, world={world}"
        )
    return ""


def _problem(shares: Shares) -> str:
    problem = problem_of_ranks(shares.batch_size, shares.rank, shares.world, shares.uneven)
    if problem:
        return problem
    if shares.samples == 0:
        return "the dataset is empty: look at the folder or the split that it reads"
    if shares.batches == 0:
        return (
            f"{shares.samples} samples make no batch with uneven={shares.uneven!r}: a global batch "
            f"is {shares.global_batch} ({shares.world} ranks x batch_size {shares.batch_size}); "
            "set a smaller batch_size, or uneven='pad'"
        )
    return ""
