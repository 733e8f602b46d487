"""A claim that one node has at a time (ReadWriteOnce): the Job of the one queue has it alone.

The pod of the queue may be on any node, so the helper pod has gone before the Job is made, and is
not made again while the Job is at work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.places import kube_ends
from boxcar.laptop.release import kube_objects
from boxcar.laptop.release.kube_objects import Object, Owner
from boxcar.laptop.run import kube_pods
from boxcar.shared.errors import InputError
from boxcar.shared.sentence import Sentence, _


def is_for_one_node(claim: Mapping[str, Any]) -> bool:
    """Whether pods of one node have it at a time, and no others."""
    modes = claim["spec"].get("accessModes", [])
    return "ReadWriteMany" not in modes and "ReadWriteOnce" in modes


def not_for_several() -> Sentence:
    return _(
        "one queue on one node alone can have a ReadWriteOnce claim; else it must be ReadWriteMany"
    )


def is_taken(jobs: Iterable[Mapping[str, Any]]) -> bool:
    """Whether only the pod of a queue may have it now."""
    return any(map(kube_objects.is_alone_with_claim, filter(kube_pods.is_at_work, jobs)))


def left_to(kubectl: Kubectl, owner: Owner, made: Object, queues: int) -> Object:
    """`made`, as it is to be created now: of a claim of one node the helper pod has gone, and the
    Job says that it has the claim alone. Raises InputError where others need it, too.
    """
    claim = kubectl.find("persistentvolumeclaim", owner.claim)
    if claim is None or not is_for_one_node(claim):
        return made
    begun = any(map(kube_pods.is_at_work, kube_ends.of_run(kubectl, owner, "jobs")))
    if begun or queues > 1 or made["kind"] == kube_objects.JOBSET:
        raise InputError(not_for_several())
    pods = kube_ends.of_run(kubectl, owner, "pods")
    name = kube_objects.helper_name(owner)
    kube_ends.delete(kubectl, owner, [pod for pod in pods if pod["metadata"]["name"] == name])
    return kube_objects.alone_with_claim(made)
