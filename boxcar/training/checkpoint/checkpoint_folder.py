"""What happens to the checkpoints that are there: whose they are, which go, which is the anchor.

All of it on rank 0; after an asynchronous save, in its thread.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import os
import time
import weakref
from pathlib import Path
from typing import Any

from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, InputError, TemporaryError
from boxcar.training.checkpoint import behind, cadence, retention
from boxcar.training.reporting.say import say


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
        plan = retention.plan_retention(self._store.names(), self._keep, self._verified)
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
