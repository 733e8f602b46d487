"""A queue whose cells take several pods: a JobSet of the agent's Job, and of a Job for the others.

Pure. JobSet (`jobset.x-k8s.io/v1alpha2`, of kubernetes-sigs/jobset) is an addition that a cluster
has or has not. It makes a headless service, by which each pod has a name that stays when the pod is
replaced. The set has ended when the agent's Job has, and its other pods go then; a pod that died is
replaced alone, by its Job. Decision 0151 has the reasons.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from boxcar.laptop.release import kube_objects
from boxcar.laptop.release.kube_objects import JOBSET, OF_SET, QUEUE, ROLE, Object, Owner
from boxcar.shared import environment, names
from boxcar.shared.files.plan import Plan

GROUP = "jobset.x-k8s.io"
API = f"{GROUP}/v1alpha2"
# As kubectl takes them, also where another addition has jobsets of its own.
KIND = f"jobsets.{GROUP}"


def pods_of(plan: Plan, queue: str) -> int:
    """How many the queue needs: as many nodes as the largest of its cells."""
    file = names.file_of(queue)
    return max((cell.nodes for cell in plan.cells if cell.queue == file), default=1)


def job_set(owner: Owner, queue: str, job: Mapping[str, Any], pods: int) -> Object:
    """`job` is the queue's own Job, as it is where one pod is enough; `pods` is 2 or more."""
    name = kube_objects.set_name(owner, queue)
    about = {environment.PODS: str(pods), environment.PODS_DOMAIN: name}
    spec: Object = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": [OF_SET[0]]},
        "replicatedJobs": [
            _replicated(OF_SET[0], job, 1, about),
            _replicated(OF_SET[1], job, pods - 1, about | {environment.FOLLOWS: queue}),
        ],
    }
    if job["spec"].get("suspend"):
        spec["suspend"] = True
    return {
        "apiVersion": API,
        "kind": JOBSET,
        "metadata": {"name": name, "labels": dict(job["metadata"]["labels"])},
        "spec": spec,
    }


def _replicated(part: str, job: Mapping[str, Any], count: int, env: Mapping[str, str]) -> Object:
    """The Job again, `count` pods of it. Whether it is suspended the set decides, and Kueue looks
    at the set.
    """
    labels = {key: value for key, value in job["metadata"]["labels"].items() if "/" not in key}
    labels |= {ROLE: part}
    spec = copy.deepcopy({key: value for key, value in job["spec"].items() if key != "suspend"})
    spec |= {"completionMode": "Indexed", "completions": count, "parallelism": count}
    spec["template"]["metadata"]["labels"] |= {ROLE: part}
    [main] = spec["template"]["spec"]["containers"]
    main["env"] = [
        *main.get("env", []),
        {"name": environment.POD, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        *({"name": key, "value": value} for key, value in env.items()),
    ]
    return {"name": part, "replicas": 1, "template": {"metadata": {"labels": labels}, "spec": spec}}


def is_agents(pod: Mapping[str, Any]) -> bool:
    """Whether a pod of a queue has its agent: of a JobSet the others follow it."""
    return bool(pod["metadata"].get("labels", {}).get(ROLE) != OF_SET[1])


def wholes(objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What has to be deleted, so that these go: a JobSet would make its Jobs again."""
    found: dict[str, dict[str, Any]] = {}
    for one in objects:
        meta = one["metadata"]
        sets = [each for each in meta.get("ownerReferences", []) if each["kind"] == JOBSET]
        if one["kind"] != "Job" or not sets:
            found[meta["uid"]] = dict(one)
            continue
        about = {"name": sets[0]["name"], "uid": sets[0]["uid"], "namespace": meta["namespace"]}
        labels = {QUEUE: meta["labels"][QUEUE]}
        set_ = {"apiVersion": sets[0]["apiVersion"], "kind": JOBSET}
        found[about["uid"]] = set_ | {"metadata": about | {"labels": labels}}
    return list(found.values())
