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
from boxcar.shared.files.plan import Plan
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.wire.cluster_asks import SlurmFacts, SlurmTried

_FLOCK = {
    "works": mark("flock works"),
    "fails": mark("flock fails"),
    "lies": mark("flock works only within one node"),
}
_NO_LIMIT = ("UNLIMITED", "INFINITE", "NONE", "")


def judge_cluster(
    facts: SlurmFacts, jobs: Sequence[BatchJob], plan: Plan, login: str | None
) -> list[Row]:
    """All rows; `box` is a queue, or all."""
    where = login or _("this machine")
    version = _("{version} on {where}", version=facts.version, where=where)
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
        silent = _("{nodes}: the training Python does not start", nodes=", ".join(tried.silent))
        return [Row(box, "node", "refuse", silent, tried.problem or "")]
    if not tried.nodes:
        return [
            Row(
                box,
                "node",
                "warn",
                _("not tested"),
                _("no node was free: {problem}", problem=tried.problem),
            )
        ]
    rows = [
        Row(
            box,
            "node",
            "ok",
            _("{nodes}: Python {python}", nodes=", ".join(tried.nodes), python=tried.python),
        ),
        *_gpus(tried, job, box),
    ]
    if tried.hook_problem:
        failed = _(
            "cells run without what the hook sets. If `module` is not found, source "
            "/etc/profile.d/modules.sh first"
        )
        rows.append(Row(box, "hook", "warn", tried.hook_problem, failed))
    if tried.shm_free_bytes is not None and tried.shm_free_bytes < SMALL_SHM_BYTES:
        found = units.size(tried.shm_free_bytes)
        rows.append(
            Row(
                box, "/dev/shm", "warn", found, _("set num_workers=0, or request a larger /dev/shm")
            )
        )
    if tried.problem:
        return [
            *rows,
            Row(box, _("tier from nodes"), "refuse", _("not writable"), tried.problem),
        ]
    return [*rows, *_of_two_nodes(tried, box)]


def _gpus(tried: SlurmTried, job: BatchJob, box: str) -> Iterator[Row]:
    if job.options.gres and "gpu" in job.options.gres:
        verdict: Verdict = "ok" if tried.gpus else "refuse"
        reason = "" if tried.gpus else _("the job requests GPUs, but a test job saw none")
        yield Row(box, "GPUs", verdict, _("{n} visible", n=tried.gpus), reason)


def _of_two_nodes(tried: SlurmTried, box: str) -> Iterator[Row]:
    if not tried.is_one_winner:
        yield Row(
            box,
            "claims",
            "refuse",
            ", ".join(tried.nodes),
            _("two nodes took the same claim: the tier is not the same storage on all nodes"),
        )
    elif tried.flock is None:
        yield Row(box, "claims", "warn", _("tested on one node"), _("no second node was free"))
    else:
        yield Row(box, "claims", "ok", _("one of {n} nodes won", n=len(tried.nodes)))
        reason = "" if tried.flock == "works" else _("harmless: a queue belongs to its Slurm job")
        yield Row(
            box,
            "file locks",
            "ok",
            Sentence(_FLOCK.get(tried.flock, mark("flock fails"))),
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
    asked = " ".join(job.options.lines()) or _("cluster defaults")
    reason = _("sbatch says: {said}", said=said) if said else ""
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
            found = _("{asked}, but {partition} allows {longest}", **about)
            yield Row(
                box,
                "time",
                "refuse",
                found,
                _("sbatch accepts it, but the job would never start: request less"),
            )
        else:
            yield Row(box, "time", "ok", str(job.options.time))
    for name, one in known:
        if one.get("State", "UP") != "UP":
            found = _("{name} is {state}", name=name, state=one["State"])
            yield Row(box, "partition", "warn", found, _("jobs there will wait"))
    if job.options.time is None:
        reason = _("the partition's default applies: set slurm: {{time: …}}")
        yield Row(box, "time", "warn", _("not set"), reason)


def _array(facts: SlurmFacts, job: BatchJob, box: str) -> Iterator[Row]:
    largest = max(job.queues)
    if facts.max_array_size is not None and largest >= facts.max_array_size:
        found = _(
            "index {index}, but MaxArraySize is {most}", index=largest, most=facts.max_array_size
        )
        yield Row(box, "array", "refuse", found, _("merge some queue files"))


def _resume(plan: Plan) -> Iterator[Row]:
    if plan.resume is None and not any(rule.resume for rule in plan.rules):
        yield Row(
            ALL,
            "resume",
            "warn",
            _("none"),
            _(
                "a cell still running at the time limit starts over: name its checkpoint with "
                "resume: in job.yaml"
            ),
        )


def _limit_s(text: str) -> float | None:
    """None where there is none, or it is not readable."""
    if text.upper() in _NO_LIMIT:
        return None
    try:
        return float(seconds_of(text))
    except ValueError:
        return None
