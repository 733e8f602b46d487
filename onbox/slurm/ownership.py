"""Whose a queue is under Slurm, beyond what a lock says: see boxcar/shared/slurm/lease.py.

With squeue silent nobody takes a queue over, ever: its owner may run on a node that is out of
sight. Whoever waits for an answer waits some minutes, and then leaves the queue alone.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import BoxcarError, Command, InputError, TemporaryError, message_of
from boxcar.shared.files import codec
from boxcar.shared.paths import DurablePaths
from boxcar.shared.sentence import _
from boxcar.shared.slurm import lease
from boxcar.shared.slurm.lease import Lease, Standing
from onbox.slurm import ended, squeue

# The batch script says that the agent is one of ours, in a job of ours.
VARIABLE = "BOXCAR_SLURM"
# Of Slurm: its own name of the node, which may not be the host's.
_NODE = "SLURMD_NODENAME"
# KillWait of a site may be a minute and more, and slurmctld may be started anew.
PATIENCE_S = 300.0
LOOK_EVERY_S = 30.0
_TICK_S = 0.5


class Owned:
    """A queue that is this job's, until `is_ours` says otherwise."""

    def __init__(self, folder: Path, number: int, own: Lease) -> None:
        self._folder = folder
        self._number = number
        self._own = own
        # How the job ended that had the queue before, in Slurm's words.
        self.before: str | None = None

    @property
    def shown(self) -> dict[str, Any]:
        """As the journal says it."""
        own = self._own
        about = {"job": own.named, "restarts": own.restarts, "node": own.node}
        return about | ({"before": self.before} if self.before else {})

    def is_ours(self) -> bool:
        """Whether nobody has taken it over since. Raises OSError."""
        return lease.numbers_in(self._folder)[-1:] == [self._number]

    def taken_from(self) -> Lease | None:
        """Whose it was before. One that cannot be read tells nothing."""
        try:
            return lease.owner_until(self._folder, self._number - 1)
        except (BoxcarError, OSError):
            return None

    def end(self) -> None:
        """Nobody has to ask squeue for this job any more. A tier that is gone costs only that."""
        with contextlib.suppress(OSError):
            if self.is_ours():
                over = replace(self._own, ended_at=timestamp.utc_now())
                atomic.write_whole(lease.path(self._folder, self._number), codec.to_document(over))


def is_ours_to_take(environ: Mapping[str, str] = os.environ) -> bool:
    return environ.get(VARIABLE) == "1"


def take(
    tier: DurablePaths,
    queue: str,
    environ: Mapping[str, str] = os.environ,
    patience_s: float = PATIENCE_S,
) -> Owned:
    """Raises TemporaryError where the queue is another job's, or nobody knows."""
    own = lease.owner(
        environ, queue, environ.get(_NODE) or os.uname().nodename, timestamp.utc_now()
    )
    if own is None:
        raise InputError(
            _(
                "{variable} is set, and SLURM_JOB_ID is not: this is no job of Slurm",
                variable=VARIABLE,
            )
        )
    folder = tier.slurm_leases(queue)
    atomic.make_folder(folder)
    until = time.monotonic() + patience_s
    while (owned := _try(tier, folder, own)) is None:
        if time.monotonic() >= until:
            raise TemporaryError(_why_not(tier, folder, queue), Command("status"))
        time.sleep(min(LOOK_EVERY_S, max(_TICK_S, until - time.monotonic())))
    if (before := owned.taken_from()) is not None:
        owned.before = ended.state_of(before, own, tier)
    return owned


def take_of_ended(
    tier: DurablePaths, queue: str, environ: Mapping[str, str] = os.environ
) -> tuple[Owned, str] | None:
    """The queue of another member whose job has ended, for a moment, and how it ended; None where
    Slurm does not say so now. An agent of that queue that runs all the same writes nothing more.

    Raises BoxcarError, OSError.
    """
    folder = tier.slurm_leases(queue)
    number, newest = lease.newest(folder)
    before = lease.owner_until(folder, number)
    node = environ.get(_NODE) or os.uname().nodename
    own = lease.owner(environ, queue, node, timestamp.utc_now())
    if newest is None or before is None or own is None:
        return None
    tasks = squeue.look_now(tier).tasks
    how = ended.of_queue(before, tasks)
    is_free = lease.of_job(newest, {task.task: task.state for task in tasks}) is Standing.FREE
    owned = _make(folder, number + 1, replace(own, gives_back=True)) if how and is_free else None
    return (owned, how) if owned and how else None


def hold(tier: DurablePaths, queue: str, patience_s: float = 2.0) -> int | None:
    """The queue's lock, for something short that its agent must not be beside; None where it runs.

    Raises TemporaryError where it is a Slurm job's and nobody knows whether that runs.
    """
    fd = lock.hold(tier.lock(queue), patience_s)
    if fd is None:
        return None
    try:
        is_free = _is_free(tier, queue)
    except BaseException:
        os.close(fd)
        raise
    if is_free:
        return fd
    os.close(fd)
    return None


def _is_free(tier: DurablePaths, queue: str) -> bool:
    newest = lease.newest(tier.slurm_leases(queue))[1]
    if newest is None or newest.ended_at is not None:
        return True
    states = {task.task: task.state for task in squeue.look_now(tier).tasks}
    standing = lease.of_job(newest, states)
    if standing is Standing.UNKNOWN:
        raise TemporaryError(
            _("{queue}: Slurm says {named} of its job", queue=queue, named=states.get(newest.named))
        )
    return standing is Standing.FREE


def _try(tier: DurablePaths, folder: Path, own: Lease) -> Owned | None:
    """None where it cannot be known yet. Raises TemporaryError where it is somebody else's."""
    number, newest = lease.newest(folder)
    found = lease.standing(newest, own, None)
    if found is Standing.UNKNOWN:
        found = lease.standing(newest, own, _states(tier, own))
    if found is Standing.HELD and newest:
        raise TemporaryError(
            _(
                "{queue}: its agent is already running, in Slurm's job {named} on {node}; it was "
                "left alone",
                queue=own.queue,
                named=newest.named,
                node=newest.node,
            )
        )
    if found is Standing.OURS:
        return Owned(folder, number, own)
    if found is not Standing.FREE:
        return None
    return _make(folder, number + 1, own)


def _make(folder: Path, number: int, own: Lease) -> Owned | None:
    if not atomic.create_once(lease.path(folder, number), codec.to_document(own)):
        return None  # somebody was quicker: look whose it is
    owned = Owned(folder, number, own)
    # Read back: a file system that keeps names for itself for a while shows the other's then.
    there = lease.read_lease(lease.path(folder, number))
    return owned if owned.is_ours() and there and there.start == own.start else None


def _states(tier: DurablePaths, own: Lease) -> Mapping[str, str] | None:
    """Of each task of ours; None where squeue is silent."""
    try:
        return {task.task: task.state for task in squeue.look_now(tier).tasks}
    except (InputError, TemporaryError):
        return _as_seen_outside(tier, own)


def _as_seen_outside(tier: DurablePaths, own: Lease) -> Mapping[str, str] | None:
    """A container has no squeue: the batch script has asked it outside, for this very start."""
    try:
        head, *lines = tier.slurm_outside(own.queue).read_text().splitlines()
    except (OSError, ValueError):
        return None
    if head != f"{own.named} {own.restarts}":
        return None
    return dict(line.split("|", 1) for line in lines if "|" in line)


def _why_not(tier: DurablePaths, folder: Path, queue: str) -> str:
    newest = lease.newest(folder)[1]
    job = f"Slurm's job {newest.named} on {newest.node}" if newest else "another job"
    try:
        squeue.look_now(tier)
        why = "which does not end"
    except BoxcarError as error:
        why = f"and whether that runs is not known: {message_of(error).text}"
    return f"{queue}: it belongs to {job}, {why}. It was left alone"
