"""What happens to the checkpoints that are there: whose they are, which go, from which to go on.

All of it on rank 0; after an asynchronous save, in its thread.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import os
import re
import time
import weakref
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, InputError, TemporaryError, counted
from boxcar.training.checkpoint import behind, cadence
from boxcar.training.reporting.say import say

# --- Which checkpoints may go. Pure: names in, names out.
# A checkpoint is `step_00000120`; a second one of the same step is `step_00000120-1`, because a
# file that somebody may need is never overwritten.


_NAME = re.compile(r"step_(\d{8,})(?:-(\d+))?")


class Plan(NamedTuple):
    """`verify`: a checkpoint that must be read back whole before anything of `delete` goes."""

    delete: list[str]
    verify: str | None


def name_checkpoint(step: int, taken: Collection[str]) -> str:
    """A name for a new checkpoint, newer than all `taken` ones of the same step."""
    again = [key[1] for key in map(age_of_checkpoint, taken) if key is not None and key[0] == step]
    return f"step_{step:08d}" + (f"-{max(again) + 1}" if again else "")


def age_of_checkpoint(name: str) -> tuple[int, int] | None:
    """Step and count, in the order of age; None for a name that is no checkpoint's."""
    found = _NAME.fullmatch(name)
    return (int(found[1]), int(found[2] or 0)) if found else None


def newest_first(names: Collection[str]) -> list[str]:
    """The names that are checkpoints'."""
    keys = {name: key for name in names if (key := age_of_checkpoint(name)) is not None}
    return sorted(keys, key=lambda name: keys[name], reverse=True)


def plan_retention(names: Collection[str], keep: int, verified: Collection[str]) -> Plan:
    """Keep the `keep` newest, and delete nothing before a kept one is known to be readable.

    `verified` were read back whole: what this run resumed from, and what was verified since. So the
    anchor of a resume goes only when a newer one has proved that it can take its place.
    """
    ordered: Sequence[str] = newest_first(names)
    kept, old = list(ordered[:keep]), list(ordered[keep:])
    if not old or any(name in verified for name in kept):
        return Plan(old, None)
    return Plan(old, kept[0])


# --- Whether a checkpoint may be gone on from: the same settings, and a world that gives the same.
# Pure: saved and present values in, sentences out.


def resume_problems(
    saved: Mapping[str, Any], identity: Mapping[str, Any], world: int, loader: Mapping[str, Any]
) -> list[str]:
    """Why this training must not go on from `saved`; empty where it may.

    `loader` is the present loader's state, {} where there is none.
    """
    if changed := differing_settings(saved["identity"], identity):
        return [
            f"it was saved with other settings ({'; '.join(changed)}): give the same ones, or "
            "another folder"
        ]
    if saved["world"] == world:
        return []
    why = _another_batch(saved.get("loader") or {}, loader)
    if why is None:
        return []
    return [
        f"it was saved by {counted(saved['world'], 'rank')}, but now there are {world}, and {why}: "
        f"start {counted(saved['world'], 'rank')}"
    ]


def differing_settings(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`name was x, is y` for what is not the same, in the order of `now`."""
    absent = "not given"
    return [
        f"{name} was {saved.get(name, absent)}, is {now.get(name, absent)}"
        for name in {**now, **saved}
        if name not in saved or name not in now or not _is_equal(saved[name], now[name])
    ]


def _another_batch(saved: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Why the steps would not be the same; None where each step takes the same samples."""
    was, is_now = saved.get("global_batch"), now.get("global_batch")
    if None in (was, is_now):
        return "no loader in TrainingState says whether the global batch is the same"
    return None if was == is_now else f"the global batch was {was}, is {is_now}"


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and bool((one == other).all())
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return not differing_settings(one, other)
    # A tuple of the script may come back as one, a list from a YAML file as the other.
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return type(one) is type(other) and bool(one == other)


class CheckpointFolder:
    """Looks after one folder of checkpoints in a store (FileStore or Sharded)."""

    def __init__(self, folder: Path, store: Any, keep: int) -> None:
        self._folder, self._store, self._keep = folder, store, keep
        self._verified: set[str] = set()
        self._history = cadence.History()
        self._started_s = time.monotonic()

    @property
    def history(self) -> cadence.History:
        """Of all starts, up to now."""
        running_s = self._history.running_s + time.monotonic() - self._started_s
        return dataclasses.replace(self._history, running_s=running_s)

    def begin(self) -> None:
        """The folder, without what killed saves left; one more start in the history."""
        behind.through()
        atomic.make_folder(self._folder)
        weakref.finalize(self, os.close, _claim(self._folder))
        if problem := self._store.wrong_kind():
            raise InputError(problem)
        self._store.remove_unfinished()
        known = cadence.read_history(self._folder)
        self._history = dataclasses.replace(known, starts=known.starts + 1)
        self._write_history()

    def choose(self) -> dict[str, str] | None:
        """The newest intact one, with its id; what comes before it is set aside."""
        is_refused = self._store.adopt()
        for name in self._store.names():
            try:
                return {"name": name, "id": self._store.check(name)}
            except DamagedError as error:
                self._store.refuse(name, str(error))
                is_refused = True
        if is_refused:
            say(f"{self._folder}: nothing is readable: starting from scratch")
        return None

    def anchor(self, name: str, history: dict[str, Any] | None) -> None:
        """This one was read whole, and training goes on from it."""
        self._verified = {name}
        self._history = cadence.merged(self._history, history)
        self._store.publish(name)

    def tidy(self) -> None:
        """After a whole write: what may go."""
        plan = plan_retention(self._store.names(), self._keep, self._verified)
        if plan.verify is not None:
            self._verify(plan.verify)
        for old in plan.delete:
            self._store.delete(old)
            self._verified.discard(old)
        self._write_history()

    def _verify(self, name: str) -> None:
        try:
            self._store.verify(name)
        except DamagedError as error:
            self._store.refuse(name, f"{error} (it was written just now)")
            raise
        self._verified.add(name)

    def _write_history(self) -> None:
        # It only sets a cadence: no save fails because of it.
        with contextlib.suppress(OSError):
            cadence.write_history(self._folder, self.history)


def _claim(folder: Path) -> int:
    """Keep the folder for this process; the descriptor that does, until it is closed.

    Not flock: loader workers would inherit that, and outlive a killed rank for seconds. Raises
    TemporaryError where another process has it: ranks outlive a torchrun that was killed.
    """
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            os.close(fd)
            raise TemporaryError(
                f"{folder}: another training saves here and still runs (`fuser {folder}/lock` "
                "shows it, perhaps the ranks of a launcher that was killed): end it, or wait"
            ) from error
        # A file system without locks: nothing can be asked there.
    return fd
