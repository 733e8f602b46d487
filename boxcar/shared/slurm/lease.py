"""`slurm/leases/<queue>/<n>.json`: which Slurm job a queue belongs to; the one with the highest
number counts. Each is made once, so of two who take a queue over at once one gets it.

Whether flock excludes other nodes nobody can see, and a Slurm job is known to all of them. A later
start of the same task takes over by itself: Slurm starts it again only when the earlier is over.
Anybody else's job must be neither running nor completing, and squeue has to say so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.files import codec
from boxcar.shared.record import dataclass
from boxcar.shared.slurm.submitted import HAS_NODES, WAITS

ENDED = (
    *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"),
    *("BOOT_FAIL", "DEADLINE", "REVOKED"),
)


class Standing(Enum):
    FREE = "free"
    OURS = "ours"
    HELD = "held"
    ENDING = "ending"  # somebody's, for a moment still
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Lease:
    """`job` is the array's number, or that of a job which is none; `task` its index there."""

    FORMAT: ClassVar[str] = "slurm_lease"
    VERSION: ClassVar[int] = 1

    queue: str
    job: str
    task: str | None
    restarts: int
    node: str
    at: str
    # Written by its owner at its end: nobody has to ask squeue then.
    ended_at: str | None = field(default=None, metadata=codec.LATER)
    # Made by the job of another member of the pool, which takes a cell that the queue had begun.
    gives_back: bool = field(default=False, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> str:
        """As squeue and scancel spell it."""
        return self.job if self.task is None else f"{self.job}_{self.task}"

    @property
    def start(self) -> tuple[str, int]:
        return self.named, self.restarts


def owner(environ: Mapping[str, str], queue: str, node: str, at: str) -> Lease | None:
    """This process's job, as Slurm says it; None outside of one."""
    job = environ.get("SLURM_ARRAY_JOB_ID") or environ.get("SLURM_JOB_ID")
    if not job:
        return None
    restarts = environ.get("SLURM_RESTART_COUNT", "")
    task = environ.get("SLURM_ARRAY_TASK_ID") or None
    return Lease(queue, job, task, int(restarts) if restarts.isdigit() else 0, node, at)


def standing(newest: Lease | None, own: Lease, states: Mapping[str, str] | None) -> Standing:
    """Whether `own` may take the queue. `states` is what squeue says of each task, by its name;
    None where it says nothing.
    """
    if newest is None:
        return Standing.FREE
    if newest.start == own.start:
        return Standing.OURS
    if newest.ended_at is not None:
        return Standing.FREE
    if newest.named == own.named:
        return Standing.FREE if newest.restarts < own.restarts else Standing.HELD
    return of_job(newest, states)


def of_job(newest: Lease, states: Mapping[str, str] | None) -> Standing:
    """FREE where its job is over, or waits to be started again."""
    if newest.ended_at is not None:
        return Standing.FREE
    if states is None:
        return Standing.UNKNOWN
    state = states.get(newest.named)
    if state is None or state in ENDED or state in WAITS:
        return Standing.FREE
    if state == "COMPLETING" or (newest.gives_back and state in HAS_NODES):
        return Standing.ENDING
    return Standing.HELD if state in HAS_NODES else Standing.UNKNOWN


def numbers(names: Sequence[str]) -> list[int]:
    """Of a folder's files, in order."""
    return sorted(int(stem) for name in names if (stem := name.removesuffix(".json")).isdigit())


def numbers_in(folder: Path) -> list[int]:
    try:
        return numbers(os.listdir(folder))  # noqa: PTH208  (asked of the server each time)
    except FileNotFoundError:
        return []


def path(folder: Path, number: int) -> Path:
    return folder / f"{number}.json"


def newest(folder: Path) -> tuple[int, Lease | None]:
    """Its number, 0 where there is none. Raises DamagedError."""
    found = numbers_in(folder)
    return (found[-1], read_lease(path(folder, found[-1]))) if found else (0, None)


def owner_until(folder: Path, number: int) -> Lease | None:
    """The last one up to that number under which the queue's own agent ran. Raises DamagedError."""
    for one in reversed(numbers_in(folder)):
        if one <= number and (found := read_lease(path(folder, one))) and not found.gives_back:
            return found
    return None


def read_lease(path: Path) -> Lease | None:
    """None where there is none. Raises DamagedError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return codec.from_document(Lease, data, str(path))
