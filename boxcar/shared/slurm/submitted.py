"""What was handed to sbatch, on the durable tier: written before the call, and after it.

`slurm/submitting.json` is there while somebody submits; of two who begin at once one makes it. What
it says tells the next one what to look for, should nobody know what came of the call. Once a job is
known the record goes to `slurm/submits/<token>.json`, and stays.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

# `slurm/squeue.json` on the durable tier: what squeue said of the run last, for all who look.
#
# A cluster's scheduler is shared by hundreds of people, so nobody asks it twice within FRESH_S.


FRESH_S = 30.0
# Of a task: it waits, it has nodes, or it has ended. What is in none of these is not known.
WAITS = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD")
HAS_NODES = (
    *("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"),
    "RESIZING",
)


@dataclass(frozen=True)
class Task:
    """One task of a job of ours. `task` is as scancel takes it, such as 7_0; `queue` is None where
    no record says it. Times are UTC; `start_at` may be expected only.
    """

    task: str
    queue: str | None
    state: str
    reason: str
    start_at: str | None
    node: str
    release: str
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        return self.state in WAITS

    @property
    def has_nodes(self) -> bool:
        return self.state in HAS_NODES


@dataclass(frozen=True)
class Seen:
    """`problem` is why squeue said nothing; then there are no tasks, and nothing is known."""

    FORMAT: ClassVar[str] = "slurm_seen"
    VERSION: ClassVar[int] = 1

    at: str
    tasks: tuple[Task, ...] = ()
    problem: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def read_seen_jobs(path: Path) -> Seen | None:
    """None where nobody has asked yet, or what was written is not readable: it is asked again."""
    try:
        return codec.from_document(Seen, path.read_bytes(), str(path))
    except (FileNotFoundError, DamagedError):
        return None


@dataclass(frozen=True)
class Submit:
    """`queues` by the index of their task, as text. `is_sent`: sbatch may have been called.

    `job` is the number of the array; None where it is not known. `host` and `pid` are whose call it
    was, `started` when that process began.
    """

    FORMAT: ClassVar[str] = "slurm_submit"
    VERSION: ClassVar[int] = 1

    token: str
    release: str
    script: str
    queues: dict[str, str]
    at: str
    host: str
    pid: int
    started: str
    is_sent: bool = False
    job: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def read_submit(path: Path) -> Submit | None:
    """None where there is none. Raises DamagedError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return codec.from_document(Submit, data, str(path))
