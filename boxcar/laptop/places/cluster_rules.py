"""What a cluster's own facts mean for what is asked of it: ok, warn or refuse. Pure.

sbatch takes a time limit that the partition does not allow, and the job waits for ever: so limits
are compared here. What sbatch itself refuses it has said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxcar.laptop.common import units
from boxcar.laptop.fitness.rules import ALL, SMALL_SHM_BYTES, Row, Verdict
from boxcar.laptop.project.profiles.slurm_options import seconds_of
from boxcar.laptop.release.batch_jobs import BatchJob
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.files.plan import Plan
from boxcar.shared.wire.cluster_asks import SlurmFacts, SlurmTried

_FLOCK = {
    "works": "cluster.flock_works",
    "fails": "cluster.flock_fails",
    "lies": "cluster.flock_lies",
}
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
        yield Row(
            box,
            "file locks",
            "ok",
            Sentence(_FLOCK.get(tried.flock, "cluster.flock_fails")),
            reason,
        )


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
