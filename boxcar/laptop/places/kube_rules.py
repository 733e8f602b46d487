"""What a Kubernetes cluster's answers mean for a run: ok, warn or refuse. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from boxcar.laptop.fitness.rules import ALL, Row
from boxcar.laptop.places import kube_claim
from boxcar.laptop.places.kube_facts import KubeFacts
from boxcar.laptop.project.profiles.kube_options import KubeOptions
from boxcar.laptop.release import kube_jobset
from boxcar.laptop.release.kube_objects import POLICY_SINCE
from boxcar.shared.files.plan import Plan
from boxcar.shared.sentence import _

Object = Mapping[str, Any]

_THOUSANDS = ("", "k", "M", "G", "T", "P")
_SUFFIXES = {"m": Decimal("0.001")}
_SUFFIXES |= {name: Decimal(1000**power) for power, name in enumerate(_THOUSANDS)}
_SUFFIXES |= {f"{name.upper()}i": Decimal(1024**power) for power, name in enumerate(_THOUSANDS)}
_WAITS_FOR_A_POD = "WaitForFirstConsumer"


def judge(
    plan: Plan, options: KubeOptions, facts: KubeFacts, jobs: Mapping[str, Object]
) -> list[Row]:
    """All rows. `jobs`: of the queues that are to be started."""
    return [
        _of_version(facts.version),
        _of_claim(options, facts, sum(kube_jobset.pods_of(plan, queue) for queue in plan.queues)),
        *_of_access(facts.allowed),
        *_of_objects(facts),
        *_of_quotas(facts, jobs),
        *_of_gpus(options, facts.node_gpus),
        *_of_queue(options, facts),
    ]


def _of_version(version: tuple[int, int]) -> Row:
    found = f"{version[0]}.{version[1]}"
    if version >= POLICY_SINCE:
        return Row(ALL, "Kubernetes", "ok", found)
    why = _("before 1.26 a Job cannot tell ends apart: a cell that failed ends it as done")
    return Row(ALL, "Kubernetes", "warn", found, why)


def _of_access(allowed: Mapping[str, bool]) -> Iterator[Row]:
    if lacking := [words for words, is_so in allowed.items() if not is_so]:
        why = _("ask the cluster's admins for a Role with these verbs")
        yield Row(ALL, "access", "refuse", ", ".join(lacking), why)


def _of_objects(facts: KubeFacts) -> Iterator[Row]:
    for kind, said in (("Job", facts.job_refusal), ("pod", facts.pod_refusal)):
        if said:
            yield Row(ALL, kind, "refuse", _("not taken"), said)


def _of_claim(options: KubeOptions, facts: KubeFacts, pods: int) -> Row:
    name, claim = str(options.claim), facts.claim
    if claim is None:
        why = _("there is no such PersistentVolumeClaim: create it, or name another one")
        return Row(ALL, "claim", "refuse", name, why)
    modes = claim["spec"].get("accessModes", [])
    if "ReadWriteMany" not in modes and not (kube_claim.is_for_one_node(claim) and pods == 1):
        why = (
            kube_claim.not_for_several()
            if kube_claim.is_for_one_node(claim)
            else _("it must be ReadWriteMany")
        )
        return Row(ALL, "claim", "refuse", f"{name}: {', '.join(modes)}", why)
    if "deletionTimestamp" in claim["metadata"]:
        why = _("it is being deleted, and its files with it: name another one")
        return Row(ALL, "claim", "refuse", name, why)
    phase = claim.get("status", {}).get("phase", "")
    if phase == "Bound" and kube_claim.is_for_one_node(claim):
        why = _("one node has it at a time: while the queue waits for its pod, nobody reads it")
        return Row(ALL, "claim", "ok", f"{name}: ReadWriteOnce", why)
    if phase == "Bound":
        return Row(ALL, "claim", "ok", name)
    if phase == "Lost":
        why = _("its volume is gone: create another claim, and name that")
        return Row(ALL, "claim", "refuse", f"{name}: {phase}", why)
    return _of_unbound_claim(f"{name}: {phase}", facts.claim_said)


def _of_unbound_claim(found: str, said: tuple[str, str]) -> Row:
    reason, message = said
    if reason == _WAITS_FOR_A_POD:
        return Row(ALL, "claim", "ok", found, _("it is bound with the first pod"))
    if reason.endswith("Failed"):
        why = _("no volume can be made for it: {message}", message=message)
        return Row(ALL, "claim", "refuse", found, why)
    if message:
        why = _("it is not bound yet: {message}", message=message)
        return Row(ALL, "claim", "warn", found, why)
    why = _("it is not bound yet; kubectl describe pvc says why")
    return Row(ALL, "claim", "warn", found, why)


def _of_gpus(options: KubeOptions, nodes: Mapping[str, int] | None) -> Iterator[Row]:
    resource, wanted = options.gpu_resource, options.gpus
    if not wanted:
        return
    if nodes is None:
        yield Row(ALL, "GPUs", "ok", _("not looked at"), _("you may not list the cluster's nodes"))
        return
    most = max(nodes.values(), default=0)
    if most >= wanted:
        fit = sum(has >= wanted for has in nodes.values())
        found = _(
            "nodes with {wanted} {resource} or more: {fit}",
            wanted=wanted,
            resource=resource,
            fit=fit,
        )
        yield Row(ALL, "GPUs", "ok", found)
        return
    found = _("at most {most} {resource} on a node", most=most, resource=resource)
    why = _("a pod asks for {wanted}, and waits until the cluster has such a node", wanted=wanted)
    if not most:
        why = _(
            "no node has any: is its device plugin there, and gpu_resource its name? A cluster "
            "that adds nodes by itself may have none yet"
        )
    yield Row(ALL, "GPUs", "warn", found, why)


def _of_queue(options: KubeOptions, facts: KubeFacts) -> Iterator[Row]:
    name = options.kueue
    if not name:
        return
    if facts.queue_problem:
        why = _("Kueue does not answer, and nothing else lets the Jobs begin: {problem}",
                problem=facts.queue_problem)  # fmt: skip
        yield Row(ALL, "Kueue", "refuse", name, why)
        return
    if facts.queue is None:
        why = _("Kueue has no such LocalQueue here. To see those there are: kubectl get queues")
        yield Row(ALL, "Kueue", "refuse", name, why)
        return
    for one in facts.queue.get("status", {}).get("conditions", []):
        if one["type"] == "Active" and one["status"] == "False":
            why = _("the queue lets nothing begin now: {message}", message=one["message"])
            yield Row(ALL, "Kueue", "warn", name, why)
            return
    yield Row(ALL, "Kueue", "ok", name)


# --- quotas


def _of_quotas(facts: KubeFacts, jobs: Mapping[str, Object]) -> Iterator[Row]:
    """A Job waits while a quota is used up; one that its pod can never fit into waits for ever."""
    tight: dict[str, Row] = {}
    for job in list(jobs.values())[:1]:
        wanted = _wanted(job["spec"]["template"]["spec"])
        for quota in facts.quotas:
            if "scopes" in quota["spec"] or "scopeSelector" in quota["spec"]:
                continue  # which pods it is for, the server knows
            tight |= {row.verdict: row for row in _of_quota(quota, wanted, len(jobs))}
    yield from [tight["refuse"]] if "refuse" in tight else tight.values()
    if facts.over_quota and not tight:
        yield Row(ALL, "quota", "warn", _("used up"), facts.over_quota)


def _of_quota(quota: Object, wanted: Mapping[str, Decimal], jobs: int) -> Iterator[Row]:
    name = quota["metadata"]["name"]
    used = quota.get("status", {}).get("used", {})
    for resource, most in quota["spec"].get("hard", {}).items():
        asked = wanted.get(resource)
        if not asked:
            continue
        found = f"{name}: {resource} {most}"
        left = _number(most) - _number(used.get(resource, "0"))
        if asked > _number(most):
            why = _(
                "a pod asks for {asked}, and would wait for ever: ask for less, or have the quota "
                "raised",
                asked=_plain(asked),
            )
            yield Row(ALL, "quota", "refuse", found, why)
        elif asked * jobs > left:
            why = _(
                "room for {fit} of {jobs} Jobs now; the others wait until some is free",
                fit=max(0, int(left // asked)),
                jobs=jobs,
            )
            yield Row(ALL, "quota", "warn", found, why)


def _wanted(pod: Object) -> dict[str, Decimal]:
    """By the names that a quota has for it, what a pod asks for."""
    wanted = {"pods": Decimal(1), "count/pods": Decimal(1)}
    for container in pod["containers"]:
        limits = container.get("resources", {}).get("limits", {})
        requests = limits | container.get("resources", {}).get("requests", {})
        named = [(f"limits.{one}", value) for one, value in limits.items()]
        named += [(f"requests.{one}", value) for one, value in requests.items()]
        named += [(one, value) for one, value in requests.items() if one in ("cpu", "memory")]
        for resource, value in named:
            wanted[resource] = wanted.get(resource, Decimal(0)) + _number(value)
    return wanted


def _number(quantity: str) -> Decimal:
    """`500m` is 0.5, `2Gi` is 2147483648. 0 for what is none, such as `1e3`."""
    found = re.fullmatch(r"(\d+\.?\d*)([A-Za-z]*)", str(quantity))
    if found is None or found[2] not in _SUFFIXES:
        return Decimal(0)
    return Decimal(found[1]) * _SUFFIXES[found[2]]


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"
