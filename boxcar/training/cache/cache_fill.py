"""Filling a latent cache: one process of the node encodes what is missing, the others wait for it.

The writer holds a lock that dies with it. It checks every shard that is there, decides whether the
disk has room, and encodes the missing shards in order, each written whole. A fill that was killed
is continued by whoever calls next, at the first shard that is missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from boxcar.shared.disk import atomic, digest, lock
from boxcar.shared.disk.mounts import is_full
from boxcar.shared.errors import DamagedError, InputError, NoRoomError
from boxcar.training import stall
from boxcar.training.cache import cache_index, memory_budget
from boxcar.training.cache.cache_index import Fingerprint, Index, ShardRecord, Tensors
from boxcar.training.cache.memory_budget import ON_THE_FLY, Choice
from boxcar.training.reporting.say import say

LOCK = "lock"
QUIET_S = 2.0
# SHA-256 lets other threads run; with more of them the disk is what is waited for.
CHECK_THREADS = 4


@dataclass(frozen=True)
class Fill:
    """One cache to be filled. `folder` is named by the fingerprint; `encode` takes raw batches."""

    folder: Path
    fingerprint: Fingerprint
    samples: int
    batch_size: int
    shard_bytes: int
    mode: str | None
    """Asked for by a person; None: decided from the room on the disk."""
    read: Callable[[list[list[int]]], Iterable[Any]]
    """Raw batches of these samples, each list of numbers one batch."""
    encode: Callable[[Any], Any]
    ready: Callable[[], contextlib.AbstractContextManager[object]]
    """Holds the encoder ready to encode."""
    seed: Callable[[int], contextlib.AbstractContextManager[object]]
    """Fixes the random numbers of one shard, so that a fill which was killed gives the same."""


class Ticker:
    """Says when a line on stderr is due: after two seconds, and then less and less often."""

    def __init__(self) -> None:
        self._began = self._said_at = time.monotonic()
        self._every_s = QUIET_S

    def elapsed_s(self) -> float | None:
        """Since the beginning, where a line is due. A fill of hours is no hang."""
        stall.beat()
        now = time.monotonic()
        if now - self._said_at < self._every_s:
            return None
        # A fill may take hours, and its lines go to a log.
        self._said_at, self._every_s = now, min(self._every_s * 1.5, 60.0)
        return now - self._began

    def tick(self, what: str, done: int, total: int, unit: str) -> None:
        if (elapsed_s := self.elapsed_s()) is not None:
            say(progress_line(what, done, total, unit, elapsed_s))


def progress_line(what: str, done: int, total: int, unit: str, elapsed_s: float) -> str:
    """`encoding: 1200 of 8000 samples, 400/s, 17 s left`."""
    line = f"{what}: {done} of {total} {unit}"
    if not done or elapsed_s <= 0:
        return line
    rate = done / elapsed_s
    return f"{line}, {rate:.3g}/s, {(total - done) / rate:.0f} s left"


def settle(fill: Fill) -> Choice:
    """Check, fill and decide, or wait until another process of this node has done it.

    Raises NoRoomError (what is whole stays), InputError (the encoder's output, the dataset), and
    what the dataset and the encoder raise.
    """
    atomic.make_folder(fill.folder)
    fd, has_waited = _lock_or_wait(fill)
    try:
        # An older word does not count: it says nothing about a byte that was flipped since.
        if has_waited and (word := _word_of_another(fd)):
            return word
        _leave_word(fd, b"")
        choice = _settle_alone(fill)
        _leave_word(fd, json.dumps(asdict(choice)).encode())
        return choice
    finally:
        # Workers that outlive an error for a while were forked with the descriptor.
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def _lock_or_wait(fill: Fill) -> tuple[int, bool]:
    """The lock's descriptor, and whether another process had it first."""
    path = fill.folder / LOCK
    ticker, pause_s, has_waited = Ticker(), 0.02, False
    while (fd := lock.try_hold(path)) is None:
        has_waited = True
        if ticker.elapsed_s() is not None:
            index = _readable_index(fill.folder)
            so_far = f": {len(index.shards)} of {index.shard_count} shards" if index else ""
            say(f"waiting for the process that fills {fill.folder}{so_far}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.5)
    return fd, has_waited


def _settle_alone(fill: Fill) -> Choice:
    atomic.remove_unfinished(fill.folder)
    index = _checked(fill, _known_index(fill)) or _planned(fill)
    disk_free_bytes = memory_budget.free_bytes(fill.folder)
    choice = memory_budget.choose(index.cache_bytes, index.missing_bytes, disk_free_bytes)
    if fill.mode:
        if choice.mode == ON_THE_FLY and fill.mode != ON_THE_FLY:
            raise NoRoomError(_no_room(fill, index, disk_free_bytes))
        choice = Choice(fill.mode, "asked for")
    if choice.mode != ON_THE_FLY and index.missing:
        with fill.ready():
            _write_missing(fill, index)
    return choice


# --- what is there


def _known_index(fill: Fill) -> Index | None:
    try:
        index = cache_index.read(fill.folder)
    except FileNotFoundError:
        return None
    except DamagedError as error:
        say(f"{error}; all shards are encoded again")
        return None
    if index.samples != fill.samples:
        raise InputError(
            f"{fill.folder}: the cache holds {index.samples} samples and the dataset has "
            f"{fill.samples}, under the same fingerprint: its `data` does not describe the dataset"
        )
    return index


def _readable_index(folder: Path) -> Index | None:
    with contextlib.suppress(OSError, DamagedError):
        return cache_index.read(folder)
    return None


def _checked(fill: Fill, index: Index | None) -> Index | None:
    """The index without the shards that are not as they were written; each of them is named."""
    if index is None:
        return None
    problems: dict[int, str] = {}
    ticker = Ticker()
    with ThreadPoolExecutor(CHECK_THREADS) as pool:
        found = pool.map(lambda shard: cache_index.problem_of(fill.folder, shard), index.shards)
        for done, (shard, problem) in enumerate(zip(index.shards, found, strict=True), start=1):
            if problem:
                problems[shard.number] = problem
            ticker.tick(f"checking {fill.folder}", done, len(index.shards), "shards")
    for number, problem in problems.items():
        path = fill.folder / cache_index.shard_name(number)
        say(f"{path} is damaged ({problem}): it is encoded again")
    return index.lacking(problems)


# --- what is to be done


def _planned(fill: Fill) -> Index:
    """An index without shards, from the first batch: what a sample looks like, how many a shard."""
    first = list(range(min(fill.batch_size, fill.samples)))
    with fill.ready(), fill.seed(0):
        structure, tensors = _encoded(fill, next(iter(fill.read([first]))), len(first))
    sample_bytes = cache_index.sample_bytes(tensors)
    # Whole batches, so that a shard is encoded alike from wherever a fill goes on.
    batches = max(1, fill.shard_bytes // max(1, sample_bytes) // fill.batch_size)
    return Index(
        fingerprint=fill.fingerprint,
        samples=fill.samples,
        samples_per_shard=batches * fill.batch_size,
        structure=structure,
        sample_bytes=sample_bytes,
        tensors=cache_index.specs_of(tensors),
    )


def _write_missing(fill: Fill, index: Index) -> None:
    missing = index.missing
    batches = {number: _batches(index.span(number), fill.batch_size) for number in missing}
    raw = iter(fill.read([batch for number in missing for batch in batches[number]]))
    total = sum(len(index.span(number)) for number in missing)
    ticker, done = Ticker(), 0
    for number in missing:
        parts = []
        with fill.seed(number):
            for batch in batches[number]:
                parts.append(_fitting(index, batch, _encoded(fill, next(raw), len(batch))))
                done += len(batch)
                ticker.tick(f"encoding into {fill.folder}", done, total, "samples")
        index = _write(fill, index, number, parts)


def _batches(span: range, batch_size: int) -> list[list[int]]:
    return [list(span[at : at + batch_size]) for at in range(0, len(span), batch_size)]


def _encoded(fill: Fill, raw: Any, samples: int) -> tuple[str, Tensors]:
    structure, tensors = cache_index.take_apart(fill.encode(raw), samples)
    return structure, {name: value.detach().cpu() for name, value in tensors.items()}


def _fitting(index: Index, batch: list[int], encoded: tuple[str, Tensors]) -> Tensors:
    structure, tensors = encoded
    specs = cache_index.specs_of(tensors)
    if (structure, specs) != (index.structure, index.tensors):
        raise InputError(
            f"all samples of a latent cache must have the same structure, shapes and dtypes. "
            f"Sample 0: "
            f"{_spelled_specs(index.structure, index.tensors)}; sample {batch[0]}: "
            f"{_spelled_specs(structure, specs)}. Pad or crop them in the transform or the encoder"
        )
    return tensors


def _spelled_specs(structure: str, specs: tuple[cache_index.TensorSpec, ...]) -> str:
    inner = ", ".join(f"{spec.name} {spec.dtype} {list(spec.shape)}" for spec in specs)
    return f"{structure} of {inner}"


def _write(fill: Fill, index: Index, number: int, parts: list[Tensors]) -> Index:
    tensors = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    data = cache_index.to_bytes(tensors)
    samples = len(index.span(number))
    record = ShardRecord(number, samples, len(data), digest.of_bytes(data))
    index_with = index.having(record)
    try:
        atomic.write_whole(fill.folder / cache_index.shard_name(number), data)
        cache_index.write(fill.folder, index_with)
    except OSError as error:
        if not is_full(error):
            raise
        free_bytes = memory_budget.free_bytes(fill.folder)
        raise NoRoomError(_no_room(fill, index, free_bytes)) from error
    return index_with


def _no_room(fill: Fill, index: Index, free_bytes: int) -> str:
    left = len(index.missing)
    return (
        f"{fill.folder}: no room for the latent cache: {index.missing_bytes} bytes are needed for "
        f"the {left} of {index.shard_count} shards that are missing, {free_bytes} are free. What "
        f"is whole stays, and the next fill continues there: make room, or choose another folder"
    )


# --- the word that the writer leaves for those who waited: what it decided, at its end


def _leave_word(fd: int, word: bytes) -> None:
    """Into the lock's own file; half of it is read as nothing."""
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, word, 0)


def _word_of_another(fd: int) -> Choice | None:
    """Of the process that was waited for; None where it died before its end."""
    try:
        return Choice(**json.loads(os.pread(fd, 4096, 0)))
    except (ValueError, TypeError):
        return None
