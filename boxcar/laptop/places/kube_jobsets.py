"""Whether a cluster has JobSet, which cells on several nodes need, and what is said where not."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.laptop.fitness.rules import ALL, Row
from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.hosts.kubectl_errors import NotThere
from boxcar.laptop.release import kube_jobset
from boxcar.laptop.release.kube_jobset import API, KIND
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


def queues(plan: Plan) -> list[str]:
    """Those whose cells take several pods."""
    return [queue for queue in plan.queues if kube_jobset.pods_of(plan, queue) > 1]


def require(kubectl: Kubectl, plan: Plan, queue: str) -> None:
    """Raises InputError, before anything of the queue is created."""
    if kube_jobset.pods_of(plan, queue) > 1 and not is_installed(kubectl):
        raise InputError(_("{queue}: {why}", queue=queue, why=_why()))


def judge(plan: Plan, wanted: Sequence[str], *, is_there: bool) -> list[Row]:
    """A row for all where it is there, else one for each of these queues."""
    if not wanted:
        return []
    if is_there:
        return [Row(ALL, "JobSet", "ok", API)]
    return [Row(plan.queues[queue], "JobSet", "refuse", _("none"), _why()) for queue in wanted]


def kinds(kubectl: Kubectl, others: str) -> str:
    """These kinds, and JobSets where the cluster has any."""
    return f"{others},{KIND}" if is_installed(kubectl) else others


def _why() -> str:
    return _(
        "cells on several nodes need JobSet, which this cluster lacks. Install it, or ask its "
        "admins to: {page}",
        page=PAGE,
    )
