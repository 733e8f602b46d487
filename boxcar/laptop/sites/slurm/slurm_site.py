"""A run on a cluster: Slurm starts the agents, and a login node answers for all queues."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.boxes.of_slurm import SlurmBoxes
from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.project.project import Project
from boxcar.laptop.release import batch_jobs
from boxcar.laptop.release.batch_jobs import BatchJob
from boxcar.laptop.run.log_source import BoxLog, FileLog, LogSource
from boxcar.laptop.run.look import is_planned
from boxcar.laptop.run.open_run import Tell
from boxcar.laptop.run.view import CellView
from boxcar.laptop.sites.site import Site, StartedOrWhy
from boxcar.laptop.sites.slurm import cluster_rules
from boxcar.laptop.sites.slurm.end_slurm import SlurmMeter
from boxcar.shared.errors import BoxcarError
from boxcar.shared.record import dataclass
from boxcar.shared.wire import cluster_asks, run_asks

AUDIT_TIMEOUT_S = 120.0
SUBMIT_TIMEOUT_S = 120.0
# srun on two nodes, and where these are not free on one.
TRY_TIMEOUT_S = 240.0
# How a queue was started that is in Slurm's hands now.
SUBMITTED = "sbatch"


@dataclass(frozen=True)
class SlurmSite(Site):
    """See Site. `tell` hears what happens while the login node is waited for."""

    # squeue is asked as often, and no oftener.
    poll_s: ClassVar[float] = 30.0
    needs_audit: ClassVar[bool] = True
    is_start_scarce: ClassVar[bool] = True

    boxes: SlurmBoxes
    tell: Tell

    @classmethod
    def of(cls, project: Project, tell: Tell) -> SlurmSite:
        return cls(project, SlurmBoxes(project, tell), tell)

    @property
    def meter(self) -> SlurmMeter:
        return SlurmMeter(self.project, self.boxes, self.tell)

    @property
    def has_mounted_tier(self) -> bool:
        return True

    @property
    def jobs(self) -> list[BatchJob]:
        return batch_jobs.of_project(self.project)

    def start(self, starts: Mapping[str, run_asks.Start]) -> StartedOrWhy:
        """One submit for all queues with the same options."""
        started: dict[str, str] = {}
        errors: dict[str, Exception] = {}
        for job in self.jobs:
            indices = batch_jobs.indices(job, list(starts))
            if not indices:
                continue
            try:
                done = self._submit(job, indices, starts)
            except (BoxcarError, OSError) as error:
                errors |= dict.fromkeys(indices.values(), error)
                continue
            started |= dict.fromkeys(done.queues, SUBMITTED)
            started |= dict.fromkeys(done.left_alone, run_asks.RUNNING)
        return started, errors

    def judged(self, *, is_thorough: bool = False) -> list[Row]:
        """What the cluster says of what is asked for, before it is asked for."""
        [first, *_] = self.plan.boxes
        jobs = self.jobs
        options = {job.script: tuple(job.options.lines()) for job in jobs}
        question = cluster_asks.SlurmAudit(first.credentials, options)
        facts = self.boxes.ask(first.name, question, timeout_s=AUDIT_TIMEOUT_S)
        rows = cluster_rules.judge_cluster(facts, jobs, self.plan, self.boxes.login)
        if is_thorough and not any(row.verdict == "refuse" for row in rows):
            for job in jobs:
                rows += cluster_rules.judge_nodes(self._tried(job), job, self.plan)
        return rows

    def _tried(self, job: BatchJob) -> cluster_asks.SlurmTried:
        """On nodes as its queues would get them, for a moment."""
        options = [word for word in job.options.lines() if not word.startswith("--time=")]
        profile = self.project.profile
        question = cluster_asks.SlurmTry(
            tuple(options), self.plan.training_python, profile.hook, profile.slurm.container
        )
        [first, *_] = self.plan.boxes
        return self.boxes.ask(first.name, question, timeout_s=TRY_TIMEOUT_S)

    def log_of(self, cell: CellView) -> LogSource | None:
        """The tier has the log, below the queue's data folder while the cell runs; the results
        after a pull.
        """
        pulled = self.pulled_log(cell.name)
        if pulled.is_file() and not cell.is_under_way:
            return FileLog(pulled)
        if not is_planned(self, cell.box):
            return None
        log = BoxLog(self.boxes, cell.box, self.tell, cell=cell.name)
        return log if log.is_there() else None

    def folders_here(self, boxes: Collection[str]) -> dict[str, Path]:
        return {}

    def _submit(
        self, job: BatchJob, indices: Mapping[int, str], starts: Mapping[str, run_asks.Start]
    ) -> cluster_asks.SlurmSubmitted:
        queues: Sequence[str] = list(indices.values())
        [digest] = {starts[queue].digest for queue in queues}
        begins = tuple(
            cluster_asks.Begin(queue, starts[queue].start_index, starts[queue].start_cell)
            for queue in queues
            if starts[queue].start_index
        )
        named = {str(index): queue for index, queue in indices.items()}
        question = cluster_asks.SlurmSubmit(
            digest,
            job.script,
            named,
            begins,
            most_lead_s=batch_jobs.most_lead_s(job.options.time_s),
            is_per_cell=job.options.is_per_cell,
        )
        box = self.plan.queues[queues[0]]
        return self.boxes.ask(box, question, timeout_s=SUBMIT_TIMEOUT_S)
