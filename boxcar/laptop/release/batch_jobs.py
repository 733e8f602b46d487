"""What is submitted to Slurm: queues with the same options are one array, and one batch script.

Pure. The index of a queue is its place in the plan, so that any of them can be submitted alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxcar.laptop.project.job_values import queue_name
from boxcar.laptop.project.profiles.slurm_options import (
    Cluster,
    SlurmOfJob,
    SlurmOptions,
    laid_over,
)
from boxcar.laptop.project.project import Project
from boxcar.shared import names
from boxcar.shared.files.plan import Cell
from boxcar.shared.files.release import RUN_SLURM
from boxcar.shared.record import dataclass

# Slurm may send the signal of a time limit up to so much early, and only then.
_SLACK_S = 30.0
# Of the time limit: what is shorter than this is not given to the last save.
_SHARE = 4


@dataclass(frozen=True)
class BatchJob:
    """One array: its script's name in the release, its options, and its queues by their index."""

    script: str
    options: SlurmOptions
    queues: dict[int, str]


def of_queues(
    queues: Sequence[str],
    cluster: Cluster,
    job: SlurmOfJob | None = None,
    cells: Sequence[Cell] = (),
) -> list[BatchJob]:
    """The arrays of these queues, which are all of the plan, in their order.

    Where nobody names `nodes`, a queue gets as many as the largest of its cells takes.
    """
    own = {queue_name(file): options for file, options in job.queues.items()} if job else {}
    alike: dict[tuple[SlurmOptions, str], dict[int, str]] = {}
    for index, queue in enumerate(queues):
        file = names.file_of(queue)
        said = [cluster, *([job] if job else []), *([own[file]] if file in own else [])]
        options = laid_over(*said)
        nodes = max((cell.nodes for cell in cells if cell.queue == file), default=1)
        if options.nodes is None and nodes > 1:
            options = options.model_copy(update={"nodes": nodes})
        # Cell by cell a queue is an array of its own, of which one task runs at a time.
        alone = queue if options.is_per_cell else ""
        alike.setdefault((options, alone), {})[index] = queue
    many = len(alike) > 1
    return [
        BatchJob(f"run_slurm_{number}.sh" if many else RUN_SLURM, options, dict(indices))
        for number, ((options, _), indices) in enumerate(alike.items(), 1)
    ]


def of_project(project: Project) -> list[BatchJob]:
    """None where it is not on a cluster."""
    if not project.profile.is_slurm:
        return []
    return of_queues(
        list(project.plan.queues), project.profile.slurm, project.job.slurm, project.plan.cells
    )


def login(cluster: Cluster, job: SlurmOfJob) -> str | None:
    """The alias of the login node; None where it is this machine."""
    return job.login or cluster.login


def signal_s(grace_s: float, time_s: int | None) -> int:
    """How long before the time limit the agent is asked to leave: enough to save, at most a quarter
    of the limit.
    """
    wanted = max(60.0, 2 * grace_s) + _SLACK_S
    most_s = most_lead_s(time_s)
    return max(1, int(wanted if most_s is None else min(wanted, most_s)))


def most_lead_s(time_s: int | None) -> int | None:
    """None where no limit is named."""
    return None if time_s is None else time_s // _SHARE


def indices(job: BatchJob, queues: Sequence[str]) -> Mapping[int, str]:
    return {index: queue for index, queue in job.queues.items() if queue in queues}
