"""What makes a queue this agent's: its lock, and under Slurm its job."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.paths import DurablePaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from onbox.slurm import ownership


@dataclass(frozen=True)
class Held:
    lock: int
    owned: ownership.Owned | None = None

    def is_ours(self) -> bool:
        return lock.keep(self.lock) and (self.owned is None or self.owned.is_ours())


@contextlib.contextmanager
def held(tier: DurablePaths, queue: str) -> Iterator[Held]:
    """The queue is the caller's inside. Raises TemporaryError where it is another agent's."""
    is_slurms = ownership.is_ours_to_take()
    with contextlib.ExitStack() as ends:
        fd = take_lock(tier.lock(queue), is_alone=is_slurms)
        if fd is None:
            raise TemporaryError(
                _("{queue}: its agent is already running; it was left alone", queue=queue)
            )
        ends.callback(os.close, fd)
        owned = ownership.take(tier, queue) if is_slurms else None
        if owned is not None:
            ends.callback(owned.end)
        for path in (tier.heartbeat(queue), tier.delivered(queue)):
            atomic.remove_unfinished_of(path)  # an agent that was killed while it wrote
        yield Held(fd, owned)


def take_lock(path: Path, *, is_alone: bool = False) -> int | None:
    """None where another agent has it. Raises InputError for a file system without locks, unless
    something else than the lock keeps other machines out.
    """
    if not is_alone and not lock.is_true(path):
        raise InputError(
            _(
                "{path}: its file system has no file locks (flock), by which an agent owns its "
                "queue. Name another one as the durable tier",
                path=path,
            )
        )
    return lock.hold(path)
