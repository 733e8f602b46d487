"""Whether a cluster has JobSet, which cells on several nodes need, and what is said where not."""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.laptop.fitness.rules import ALL, Row
from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.hosts.kubectl_errors import NotThere
from boxcar.laptop.places import kube_facts
from boxcar.laptop.release import kube_jobset
from boxcar.laptop.release.kube_jobset import API, KIND
from boxcar.laptop.release.kube_objects import Object, Owner
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Plan
from boxcar.shared.sentence import _

NEEDED = (f"create {KIND}", f"delete {KIND}")
PAGE = "https://jobset.sigs.k8s.io/docs/installation/"


def is_installed(kubectl: Kubectl) -> bool:
    try:
        kubectl.run("get", "--raw", f"/apis/{API}")
    except NotThere:
        return False
    return True


def require(kubectl: Kubectl, plan: Plan, queue: str) -> None:
    """Raises InputError, before anything of the queue is created."""
    if kube_jobset.pods_of(plan, queue) > 1 and not is_installed(kubectl):
        raise InputError(_("{queue}: {why}", queue=queue, why=_why()))


def judge(kubectl: Kubectl, owner: Owner, plan: Plan, jobs: Mapping[str, Object]) -> list[Row]:
    """What the cluster says of the JobSets; `jobs`: of the queues that are to be started."""
    pods = {queue: kube_jobset.pods_of(plan, queue) for queue in jobs}
    large = [queue for queue, many in pods.items() if many > 1]
    if not large:
        return []
    if not is_installed(kubectl):
        return [Row(plan.queues[queue], "JobSet", "refuse", _("none"), _why()) for queue in large]
    rows = [Row(ALL, "JobSet", "ok", API)]
    if lacking := [words for words in NEEDED if not kube_facts.may(kubectl, words)]:
        why = _("ask the cluster's admins for a Role with these verbs")
        rows = [Row(ALL, "JobSet", "refuse", ", ".join(lacking), why)]
    for queue in large:
        made = kube_jobset.job_set(owner, queue, jobs[queue], pods[queue])
        if said := kube_facts.tried(kubectl, made):
            rows.append(Row(plan.queues[queue], "JobSet", "refuse", _("not taken"), said))
    return rows


def kinds(kubectl: Kubectl, others: str) -> str:
    """These kinds, and JobSets where the cluster has any."""
    return f"{others},{KIND}" if is_installed(kubectl) else others


def _why() -> str:
    return _(
        "cells on several nodes need JobSet, which this cluster lacks. Install it, or ask its "
        "admins to: {page}",
        page=PAGE,
    )
