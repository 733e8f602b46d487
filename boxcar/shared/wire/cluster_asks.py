"""What is asked of a cluster's login node: which jobs Slurm has, to submit, to cancel, to try."""

from __future__ import annotations

from dataclasses import field

from boxcar.shared.record import dataclass
from boxcar.shared.slurm.submitted import Task
from boxcar.shared.wire.question import (
    SILENT,
    ArrayIndex,
    BoxPath,
    CellName,
    Count,
    Digest,
    Question,
    QueueName,
    ScriptName,
    Time,
)

# --- a cluster


@dataclass(frozen=True)
class SlurmLooked:
    """When squeue was asked, and what it said; nothing is known where there is a `problem`."""

    at: Time
    tasks: tuple[Task, ...]
    problem: str | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class SlurmLook(Question[SlurmLooked], name="slurm_look"):
    """Which jobs of the run Slurm has; as of a moment ago, where somebody has asked then and
    `is_exact` does not ask for more.
    """

    is_exact: bool = field(default=False, metadata=SILENT)


@dataclass(frozen=True)
class SlurmSubmitted:
    """`job` is the array's number, null where all queues were there already (`left_alone`)."""

    job: str | None
    queues: tuple[QueueName, ...]
    left_alone: tuple[QueueName, ...]


@dataclass(frozen=True)
class Begin:
    """Where a queue begins, as in `Start`."""

    queue: QueueName
    start_index: Count
    start_cell: CellName | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class SlurmSubmit(Question[SlurmSubmitted], name="slurm_submit"):
    """Submit the batch script `script` of the release for these queues, by their index as text.
    `most_lead_s` is how long before its time limit a queue is asked to leave at most.
    """

    digest: Digest
    script: ScriptName
    queues: dict[ArrayIndex, QueueName]
    begins: tuple[Begin, ...]
    most_lead_s: Count | None = field(default=None, metadata=SILENT)
    # Of one queue: a task for each cell that is open, one at a time.
    is_per_cell: bool = field(default=False, metadata=SILENT)


@dataclass(frozen=True)
class SlurmCancelled:
    """The tasks that were there."""

    tasks: tuple[str, ...]


@dataclass(frozen=True)
class SlurmCancel(Question[SlurmCancelled], name="slurm_cancel"):
    """End all jobs of the run; where `waiting_of` names queues, only what waits of these."""

    waiting_of: tuple[QueueName, ...] = field(default=(), metadata=SILENT)


@dataclass(frozen=True)
class SlurmFacts:
    """`partitions`: of each what scontrol says of it, `defaults` those that nobody has to name.
    `refusals`: script → what sbatch has against its options. Problems are sentences.
    """

    version: str
    max_array_size: int | None
    partitions: dict[str, dict[str, str]]
    defaults: tuple[str, ...]
    refusals: dict[str, str]
    tier_problem: str | None
    credentials_problem: str | None


@dataclass(frozen=True)
class SlurmAudit(Question[SlurmFacts], name="slurm_audit"):
    """`jobs`: script → the options of sbatch that it will be submitted with."""

    credentials: BoxPath
    jobs: dict[ScriptName, tuple[str, ...]]


@dataclass(frozen=True)
class SlurmTried:
    """What the nodes have that ran it, the least of each; nothing, and a `problem`, where none was
    free. `silent` were free, and their Python said nothing: `problem` has why. `flock` is `works`,
    `fails` or `lies`, null where only one node was free; `hook_problem` what a hook said that
    failed.
    """

    nodes: tuple[str, ...]
    python: str
    gpus: int
    shm_free_bytes: int | None
    is_one_winner: bool
    flock: str | None
    problem: str | None
    silent: tuple[str, ...] = field(default=(), metadata=SILENT)
    hook_problem: str | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class SlurmTry(Question[SlurmTried], name="slurm_try"):
    """Try by a short srun what nodes are like that these `options` of sbatch lead to, in the
    `container` if there are words for one.
    """

    options: tuple[str, ...]
    python: str
    hook: str
    container: tuple[str, ...] = field(default=(), metadata=SILENT)
