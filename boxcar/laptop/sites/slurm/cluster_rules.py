"""What a cluster's own facts mean for what is asked of it: ok, warn or refuse. Pure.

sbatch takes a time limit that the partition does not allow, and the job waits for ever: so limits
are compared here. What sbatch itself refuses it has said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxcar.laptop.common import units
from boxcar.laptop.fitness.rules import ALL, SMALL_SHM_BYTES, Row, Verdict
from boxcar.laptop.profiles.slurm_options import seconds_of
from boxcar.laptop.release.batch_jobs import BatchJob
from boxcar.shared.files.plan import Plan
from boxcar.shared.wire.asks import SlurmFacts, SlurmTried

_NO_LIMIT = ("UNLIMITED", "INFINITE", "NONE", "")


def judge(facts: SlurmFacts, jobs: Sequence[BatchJob], plan: Plan, login: str | None) -> list[Row]:
    """All rows; `box` is a queue, or all."""
    where = login or "this machine"
    rows = [Row(ALL, "Slurm", "ok", f"{facts.version} on {where}")]
    rows += _places(facts, plan)
    for job in jobs:
        box = ", ".join(plan.queues[queue] for queue in job.queues.values())
        rows += [
            *_refusal(facts, job, box),
            *_partitions(facts, job, box),
            *_array(facts, job, box),
        ]
    return [*rows, *_resume(plan)]


def of_nodes(tried: SlurmTried, job: BatchJob, plan: Plan) -> list[Row]:
    """What a short srun found there. A cluster without a free node refuses nothing."""
    box = ", ".join(plan.queues[queue] for queue in job.queues.values())
    if not tried.nodes:
        return [Row(box, "node", "warn", "not tried", f"no node was free: {tried.problem}")]
    rows = [
        Row(box, "node", "ok", f"{', '.join(tried.nodes)}: Python {tried.python}"),
        *_gpus(tried, job, box),
    ]
    if tried.shm_free_bytes is not None and tried.shm_free_bytes < SMALL_SHM_BYTES:
        found = units.size(tried.shm_free_bytes)
        rows.append(Row(box, "/dev/shm", "warn", found, "set num_workers=0, or ask for more"))
    if tried.problem:
        return [*rows, Row(box, "tier from nodes", "refuse", "not written", tried.problem)]
    return [*rows, *_of_two_nodes(tried, box)]


def _gpus(tried: SlurmTried, job: BatchJob, box: str) -> Iterator[Row]:
    if job.options.gres and "gpu" in job.options.gres:
        verdict: Verdict = "ok" if tried.gpus else "refuse"
        reason = "" if tried.gpus else "the job asks for GPUs, and a job there sees none"
        yield Row(box, "GPUs", verdict, f"{tried.gpus} visible", reason)


def _of_two_nodes(tried: SlurmTried, box: str) -> Iterator[Row]:
    if not tried.is_one_winner:
        reason = "two nodes won one claim: the tier is not one place for all nodes"
        yield Row(box, "claims", "refuse", ", ".join(tried.nodes), reason)
    elif tried.flock is None:
        yield Row(box, "claims", "warn", "tried on one node", "a second one was not free")
    else:
        yield Row(box, "claims", "ok", f"one winner of {len(tried.nodes)} nodes")
        reason = "" if tried.flock == "works" else "a queue's owner is its Slurm job, so it will do"
        yield Row(box, "file locks", "ok", f"flock {tried.flock}", reason)


def _places(facts: SlurmFacts, plan: Plan) -> Iterator[Row]:
    for what, path, problem in (
        ("durable tier", plan.durable_dir, facts.tier_problem),
        ("credentials", plan.boxes[0].credentials, facts.credentials_problem),
    ):
        yield Row(ALL, what, "refuse" if problem else "ok", path, problem or "")


def _refusal(facts: SlurmFacts, job: BatchJob, box: str) -> Iterator[Row]:
    said = facts.refusals.get(job.script)
    asked = " ".join(job.options.lines()) or "the cluster's defaults"
    reason = f"sbatch says: {said}" if said else ""
    yield Row(box, "request", "refuse" if said else "ok", asked, reason)


def _partitions(facts: SlurmFacts, job: BatchJob, box: str) -> Iterator[Row]:
    named = job.options.partition.split(",") if job.options.partition else facts.defaults
    known = [(name, facts.partitions[name]) for name in named if name in facts.partitions]
    limits_s = [_limit_s(one.get("MaxTime", "")) for _, one in known]
    asked_s = job.options.time_s
    if known and asked_s is not None and None not in limits_s:
        longest_s = max(limit for limit in limits_s if limit is not None)
        if asked_s > longest_s:
            found = f"{job.options.time}, and {', '.join(named)} allows {units.duration(longest_s)}"
            reason = "sbatch would take it, and it would wait for ever: ask for less"
            yield Row(box, "time", "refuse", found, reason)
        else:
            yield Row(box, "time", "ok", str(job.options.time))
    for name, one in known:
        if one.get("State", "UP") != "UP":
            yield Row(box, "partition", "warn", f"{name} is {one['State']}", "its jobs wait")
    if job.options.time is None:
        reason = "the partition's default counts: name one as slurm: {time: …}"
        yield Row(box, "time", "warn", "not named", reason)


def _array(facts: SlurmFacts, job: BatchJob, box: str) -> Iterator[Row]:
    largest = max(job.queues)
    if facts.max_array_size is not None and largest >= facts.max_array_size:
        found = f"index {largest}, and MaxArraySize is {facts.max_array_size}"
        yield Row(box, "array", "refuse", found, "join some queue files")


def _resume(plan: Plan) -> Iterator[Row]:
    if plan.resume is None and not any(rule.resume for rule in plan.rules):
        reason = (
            "a cell that is not through when the time limit comes begins anew: name its "
            "checkpoint as resume: in job.yaml"
        )
        yield Row(ALL, "resume", "warn", "none", reason)


def _limit_s(text: str) -> float | None:
    """None where there is none, or it is not readable."""
    if text.upper() in _NO_LIMIT:
        return None
    try:
        return float(seconds_of(text))
    except ValueError:
        return None
