"""What a Kubernetes cluster answers before anything is created: whether it would take a Job and its
pod, and what claim, quotas, nodes and queue it has. Nothing is changed by the questions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.hosts.kubectl_errors import AlreadyThere, OverQuota, Refused
from boxcar.laptop.project.profiles.kube_options import KubeOptions
from boxcar.shared.errors import BoxcarError, message_of
from boxcar.shared.record import dataclass

Object = Mapping[str, Any]

# Verb and resource, as `kubectl auth can-i` takes them.
NEEDED = (
    "create jobs",
    "delete jobs",
    "create pods",
    "create pods/exec",
    "create secrets",
)
LOCAL_QUEUES = "localqueues.kueue.x-k8s.io"
_NOT_BOUND = "Pending"


@dataclass(frozen=True)
class KubeFacts:
    """`refusals`: by queue, why its Job is not taken; "" where it is. `pod_refusal`: the same of a
    pod of such a Job; `over_quota`: only because a quota is used up now. `claim_said`: reason and
    message of the last event of a claim that is not bound. `node_gpus`: by node; None: one may not
    list nodes. `queue`: Kueue's; `queue_problem`: why it cannot be asked for.
    """

    version: tuple[int, int]
    claim: Object | None
    claim_said: tuple[str, str]
    refusals: Mapping[str, str]
    pod_refusal: str
    over_quota: str
    quotas: Sequence[Object]
    allowed: Mapping[str, bool]
    node_gpus: Mapping[str, int] | None
    queue: Object | None
    queue_problem: str


def ask(
    kubectl: Kubectl, options: KubeOptions, version: tuple[int, int], jobs: Mapping[str, Object]
) -> KubeFacts:
    """`jobs`: of the queues that are to be started."""
    claim = kubectl.find("persistentvolumeclaim", options.claim or "")
    pod_refusal, over_quota = _pod_tried(kubectl, jobs)
    queue, queue_problem = _queue(kubectl, options.kueue)
    return KubeFacts(
        version=version,
        claim=claim,
        claim_said=_said_of(kubectl, claim),
        refusals={queue: tried(kubectl, job) for queue, job in jobs.items()},
        pod_refusal=pod_refusal,
        over_quota=over_quota,
        quotas=_quotas(kubectl) if jobs else (),
        allowed={words: may(kubectl, words) for words in NEEDED},
        node_gpus=_node_gpus(kubectl, options.gpu_resource) if options.gpus else None,
        queue=queue,
        queue_problem=queue_problem,
    )


def may(kubectl: Kubectl, words: str) -> bool:
    verb, resource = words.split()
    kind, _slash, sub = resource.partition("/")
    more = (f"--subresource={sub}",) if sub else ()
    return kubectl.run("auth", "can-i", verb, kind, *more).strip() == b"yes"


def _try(kubectl: Kubectl, one: Object) -> None:
    words = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    kubectl.run(*words, data=json.dumps(one).encode())


def tried(kubectl: Kubectl, job: Object) -> str:
    """Why the server does not take it; "" where it does."""
    try:
        _try(kubectl, job)
    except AlreadyThere:
        return ""
    except Refused as error:
        return message_of(error).text
    return ""


def _pod_tried(kubectl: Kubectl, jobs: Mapping[str, Object]) -> tuple[str, str]:
    """Quotas, LimitRanges and security policies judge pods: a Job with a pod that they refuse is
    taken, and stays without. The pods of all queues ask for the same.
    """
    for job in jobs.values():
        template = job["spec"]["template"]
        named = template["metadata"] | {"generateName": f"{job['metadata']['name']}-"}
        try:
            _try(kubectl, {"apiVersion": "v1", "kind": "Pod", **template, "metadata": named})
        except OverQuota as error:
            return "", message_of(error).text
        except Refused as error:
            return message_of(error).text, ""
        break
    return "", ""


def _said_of(kubectl: Kubectl, claim: Object | None) -> tuple[str, str]:
    if claim is None or claim.get("status", {}).get("phase") != _NOT_BOUND:
        return "", ""
    about = f"involvedObject.uid={claim['metadata']['uid']}"
    try:
        said = kubectl.run("get", "events", "--field-selector", about, "-o", "json")
    except BoxcarError:
        return "", ""
    found = sorted(json.loads(said)["items"], key=lambda one: one.get("lastTimestamp") or "")
    return (found[-1]["reason"], found[-1]["message"]) if found else ("", "")


def _quotas(kubectl: Kubectl) -> Sequence[Object]:
    """None that one may not see: the server's word on a pod says the same."""
    try:
        return kubectl.items("resourcequotas", {})
    except Refused:
        return ()


def _node_gpus(kubectl: Kubectl, resource: str) -> dict[str, int] | None:
    """What each node that takes pods has in all, not what is free."""
    path = resource.replace(".", "\\.")
    columns = f"NAME:.metadata.name,OFF:.spec.unschedulable,GPUS:.status.allocatable.{path}"
    try:
        said = kubectl.run("get", "nodes", "--no-headers", "-o", f"custom-columns={columns}")
    except Refused:
        return None
    rows = [line.split() for line in said.decode().splitlines()]
    return {name: int(gpus) if gpus.isdigit() else 0 for name, off, gpus in rows if off != "true"}


def _queue(kubectl: Kubectl, name: str | None) -> tuple[Object | None, str]:
    if not name:
        return None, ""
    try:
        return kubectl.find(LOCAL_QUEUES, name), ""
    except BoxcarError as error:
        return None, message_of(error).text
