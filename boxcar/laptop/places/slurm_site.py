"""A run on a cluster: Slurm starts the agents, and a login node answers for all queues."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.common import units
from boxcar.laptop.fitness.rules import ALL, SMALL_SHM_BYTES, Row, Verdict
from boxcar.laptop.places.site import Site, StartedOrWhy
from boxcar.laptop.places.slurm_boxes import SlurmBoxes
from boxcar.laptop.project.profiles.slurm_options import seconds_of
from boxcar.laptop.project.project import Project
from boxcar.laptop.release import batch_jobs
from boxcar.laptop.release.batch_jobs import BatchJob
from boxcar.laptop.run.log_source import BoxLog, FileLog, LogSource
from boxcar.laptop.run.look import is_planned
from boxcar.laptop.run.open_run import Tell
from boxcar.laptop.run.view import CellView
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.still_running import DRAIN_OR_STOP, OnBoxes
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import BoxcarError, Command, TemporaryError
from boxcar.shared.files.plan import Plan
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.record import dataclass
from boxcar.shared.wire import box_asks, cluster_asks, run_asks
from boxcar.shared.wire.cluster_asks import SlurmFacts, SlurmTried

# The meter-stop verb of a cluster: the run's jobs are cancelled, looked at until they are gone, and
# then its secrets go.
#
# Only jobs that name this run on this tier are ever touched. Files stay: the site's file system
# outlives every job.
#
# Not covered: what the used hours cost in fair share. Only the site knows.


# KillWait of a site may be minutes, and squeue is asked every 30 s.
GONE_WITHIN_S = 300.0
_LOOK_EVERY_S = 2.0


@dataclass(frozen=True)
class SlurmMeter:
    """See site.Meter. `tell` hears of the jobs that are cancelled."""

    project: Project
    boxes: SlurmBoxes
    tell: Tell
    fix: ClassVar[Command | str] = Command("status", note="Slurm has to answer first")

    def problems(self) -> list[str]:
        """Where nobody knows what runs, nothing is torn down."""
        return self.boxes.doubts()

    def price(self) -> list[str]:
        paths = dict.fromkeys(box.credentials for box in self.project.plan.boxes)
        waiting = [f"the job {task.task}, which waits" for task in self.boxes.tasks() if task.waits]
        profile, storage = self.project.profile, self.project.profile.storage
        lost = {storage.data} - set(profile.meter_stop.preserves)
        return [
            *(f"credentials: {path} on the login node" for path in paths),
            *waiting,
            *(f"{name}: {storage.tiers[name].path or 'of the nodes'}" for name in lost),
        ]

    def stays(self) -> list[str]:
        plan = self.project.plan
        data = dict.fromkeys(box.data_dir for box in plan.boxes)
        places = [f"{plan.durable_dir}/boxcar/{plan.run}", *(f"{folder}" for folder in data)]
        return [f"{place} on the cluster" for place in places]

    def beside(self, begun: Teardown | None) -> OnBoxes:
        """No box is ended: what is others' stays as it is."""
        return OnBoxes()

    def stop(self, steps: Steps) -> None:
        """Harmless to repeat. Raises TemporaryError where a job stays, or Slurm is silent."""
        plan = self.project.plan
        [first, *_] = plan.boxes
        tasks = self.boxes.ask(first.name, cluster_asks.SlurmCancel()).tasks
        if tasks:
            self.tell(f"cancelled: {', '.join(tasks)}")
            self._wait_until_gone(first.name)
        for box in plan.boxes:
            if box.name in steps.now.boxes:
                continue
            queues = tuple(queue for queue, at in plan.queues.items() if at == box.name)
            alive = self.boxes.ask(box.name, box_asks.End(queues, box.credentials)).alive
            if alive:
                named = ", ".join(str(at_work.queue or at_work.cell) for at_work in alive)
                raise TemporaryError(
                    f"{named} is at work though its job is gone, so nothing was ended",
                    DRAIN_OR_STOP,
                )
            steps.ended(box.name)

    def to_do(self) -> str | None:
        """Nothing: Boxcar itself has cancelled the jobs."""
        return None

    def _wait_until_gone(self, box: str) -> None:
        """What scancel said proves nothing: squeue must have no such job any more."""
        until = time.monotonic() + GONE_WITHIN_S
        while True:
            looked = self.boxes.ask(box, cluster_asks.SlurmLook())
            left = [task.task for task in looked.tasks if task.waits or task.has_nodes]
            if not looked.problem and not left:
                return
            if time.monotonic() > until:
                raise TemporaryError(
                    f"{looked.problem or ', '.join(left) + ' does not end'}: the run's files and "
                    "secrets stay. Look at it on the login node (squeue --me), then",
                    Command("down"),
                )
            time.sleep(_LOOK_EVERY_S)


# What a cluster's own facts mean for what is asked of it: ok, warn or refuse. Pure.
#
# sbatch takes a time limit that the partition does not allow, and the job waits for ever: so limits
# are compared here. What sbatch itself refuses it has said.


_NO_LIMIT = ("UNLIMITED", "INFINITE", "NONE", "")


def judge_cluster(
    facts: SlurmFacts, jobs: Sequence[BatchJob], plan: Plan, login: str | None
) -> list[Row]:
    """All rows; `box` is a queue, or all."""
    where = login or Sentence("cluster.here")
    version = Sentence("cluster.version", version=facts.version, where=where)
    rows = [Row(ALL, "Slurm", "ok", version)]
    rows += _places(facts, plan)
    for job in jobs:
        box = ", ".join(plan.queues[queue] for queue in job.queues.values())
        rows += [
            *_refusal(facts, job, box),
            *_partitions(facts, job, box),
            *_array(facts, job, box),
        ]
    return [*rows, *_resume(plan)]


def judge_nodes(tried: SlurmTried, job: BatchJob, plan: Plan) -> list[Row]:
    """What a short srun found there. A cluster without a free node refuses nothing."""
    box = ", ".join(plan.queues[queue] for queue in job.queues.values())
    if tried.silent:
        silent = Sentence("cluster.no_python", nodes=", ".join(tried.silent))
        return [Row(box, "node", "refuse", silent, tried.problem or "")]
    if not tried.nodes:
        return [
            Row(
                box,
                "node",
                "warn",
                Sentence("cluster.untried"),
                Sentence("cluster.no_free_node", problem=tried.problem),
            )
        ]
    rows = [
        Row(
            box,
            "node",
            "ok",
            Sentence("cluster.nodes", nodes=", ".join(tried.nodes), python=tried.python),
        ),
        *_gpus(tried, job, box),
    ]
    if tried.hook_problem:
        failed = Sentence("cluster.hook_failed")
        rows.append(Row(box, "hook", "warn", tried.hook_problem, failed))
    if tried.shm_free_bytes is not None and tried.shm_free_bytes < SMALL_SHM_BYTES:
        found = units.size(tried.shm_free_bytes)
        rows.append(Row(box, "/dev/shm", "warn", found, Sentence("cluster.small_shm")))
    if tried.problem:
        return [
            *rows,
            Row(box, "tier from nodes", "refuse", Sentence("cluster.unwritten"), tried.problem),
        ]
    return [*rows, *_of_two_nodes(tried, box)]


def _gpus(tried: SlurmTried, job: BatchJob, box: str) -> Iterator[Row]:
    if job.options.gres and "gpu" in job.options.gres:
        verdict: Verdict = "ok" if tried.gpus else "refuse"
        reason = "" if tried.gpus else Sentence("cluster.no_gpu_seen")
        yield Row(box, "GPUs", verdict, Sentence("cluster.visible", n=tried.gpus), reason)


def _of_two_nodes(tried: SlurmTried, box: str) -> Iterator[Row]:
    if not tried.is_one_winner:
        yield Row(box, "claims", "refuse", ", ".join(tried.nodes), Sentence("cluster.two_won"))
    elif tried.flock is None:
        yield Row(
            box, "claims", "warn", Sentence("cluster.one_node"), Sentence("cluster.no_second")
        )
    else:
        yield Row(box, "claims", "ok", Sentence("cluster.one_winner", n=len(tried.nodes)))
        reason = "" if tried.flock == "works" else Sentence("cluster.job_owns")
        yield Row(box, "file locks", "ok", Sentence(f"cluster.flock_{tried.flock}"), reason)


def _places(facts: SlurmFacts, plan: Plan) -> Iterator[Row]:
    for what, path, problem in (
        ("durable tier", plan.durable_dir, facts.tier_problem),
        ("credentials", plan.boxes[0].credentials, facts.credentials_problem),
    ):
        yield Row(ALL, what, "refuse" if problem else "ok", path, problem or "")


def _refusal(facts: SlurmFacts, job: BatchJob, box: str) -> Iterator[Row]:
    said = facts.refusals.get(job.script)
    asked = " ".join(job.options.lines()) or Sentence("cluster.defaults")
    reason = Sentence("cluster.sbatch_says", said=said) if said else ""
    yield Row(box, "request", "refuse" if said else "ok", asked, reason)


def _partitions(facts: SlurmFacts, job: BatchJob, box: str) -> Iterator[Row]:
    named = job.options.partition.split(",") if job.options.partition else facts.defaults
    known = [(name, facts.partitions[name]) for name in named if name in facts.partitions]
    limits_s = [_limit_s(one.get("MaxTime", "")) for _, one in known]
    asked_s = job.options.time_s
    if known and asked_s is not None and None not in limits_s:
        longest_s = max(limit for limit in limits_s if limit is not None)
        if asked_s > longest_s:
            longest = units.duration(longest_s)
            about = {"asked": job.options.time, "partition": ", ".join(named), "longest": longest}
            found = Sentence("cluster.too_long", **about)
            yield Row(box, "time", "refuse", found, Sentence("cluster.for_ever"))
        else:
            yield Row(box, "time", "ok", str(job.options.time))
    for name, one in known:
        if one.get("State", "UP") != "UP":
            found = Sentence("cluster.is_in_state", name=name, state=one["State"])
            yield Row(box, "partition", "warn", found, Sentence("cluster.its_jobs_wait"))
    if job.options.time is None:
        reason = Sentence("cluster.default_time")
        yield Row(box, "time", "warn", Sentence("cluster.not_named"), reason)


def _array(facts: SlurmFacts, job: BatchJob, box: str) -> Iterator[Row]:
    largest = max(job.queues)
    if facts.max_array_size is not None and largest >= facts.max_array_size:
        found = Sentence("cluster.large_array", index=largest, most=facts.max_array_size)
        yield Row(box, "array", "refuse", found, Sentence("cluster.join_queues"))


def _resume(plan: Plan) -> Iterator[Row]:
    if plan.resume is None and not any(rule.resume for rule in plan.rules):
        yield Row(ALL, "resume", "warn", Sentence("audit.none"), Sentence("cluster.begins_anew"))


def _limit_s(text: str) -> float | None:
    """None where there is none, or it is not readable."""
    if text.upper() in _NO_LIMIT:
        return None
    try:
        return float(seconds_of(text))
    except ValueError:
        return None


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
        rows = judge_cluster(facts, jobs, self.plan, self.boxes.login)
        if is_thorough and not any(row.verdict == "refuse" for row in rows):
            for job in jobs:
                rows += judge_nodes(self._tried(job), job, self.plan)
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
