"""What a Kubernetes cluster answers before anything is created: whether it would take a Job and its
pod, and what claim, quotas, nodes and queue it has; and afterwards why no pod has begun. Nothing is
changed by the questions.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boxcar.laptop.common import side_by_side
from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.hosts.kubectl_errors import AlreadyThere, OverQuota, Refused
from boxcar.laptop.project.profiles.kube_options import KubeOptions
from boxcar.laptop.release.kube_objects import KUEUE_QUEUE
from boxcar.laptop.run import kube_pods
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
# What Kueue makes of a Job, and the label by which it is found.
_WORKLOADS, _OF_JOB = "workloads.kueue.x-k8s.io", "kueue.x-k8s.io/job-uid"
_NOT_BOUND = "Pending"


@dataclass(frozen=True)
class KubeFacts:
    """`job_refusal`: why a Job is not taken, or ""; `pod_refusal`: the same of a pod of it;
    `over_quota`: only because a quota is used up now. `claim_said`: reason and message of the last
    event of a claim that is not bound. `node_gpus`: by node; None: one may not list nodes.
    `queue`: Kueue's; `queue_problem`: why it cannot be asked for.
    """

    version: tuple[int, int]
    claim: Object | None
    claim_said: tuple[str, str]
    job_refusal: str
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
    """`jobs`: of the queues that are to be started. One is tried for all: they ask for the same."""
    job = next(iter(jobs.values()), None)
    questions: dict[str, Callable[[], Any]] = {
        "claim": lambda: _claim(kubectl, options.claim or ""),
        "job_refusal": lambda: tried(kubectl, job) if job else "",
        "pod": lambda: _pod_tried(kubectl, job) if job else ("", ""),
        "quotas": lambda: _quotas(kubectl) if job else (),
        "node_gpus": lambda: _node_gpus(kubectl, options.gpu_resource) if options.gpus else None,
        "queue": lambda: _queue(kubectl, options.kueue),
    } | {words: functools.partial(may, kubectl, words) for words in NEEDED}
    # Each is a program of its own, which may log in first.
    answers = side_by_side.each(questions.values(), lambda question: question())
    said = dict(zip(questions, answers, strict=True))
    return KubeFacts(
        version=version,
        claim=said["claim"][0],
        claim_said=said["claim"][1],
        job_refusal=said["job_refusal"],
        pod_refusal=said["pod"][0],
        over_quota=said["pod"][1],
        quotas=said["quotas"],
        allowed={words: said[words] for words in NEEDED},
        node_gpus=said["node_gpus"],
        queue=said["queue"][0],
        queue_problem=said["queue"][1],
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


def _pod_tried(kubectl: Kubectl, job: Object) -> tuple[str, str]:
    """Quotas, LimitRanges and security policies judge pods: a Job with a pod that they refuse is
    taken, and stays without.
    """
    template = job["spec"]["template"]
    named = template["metadata"] | {"generateName": f"{job['metadata']['name']}-"}
    try:
        _try(kubectl, {"apiVersion": "v1", "kind": "Pod", **template, "metadata": named})
    except OverQuota as error:
        return "", message_of(error).text
    except Refused as error:
        return message_of(error).text, ""
    return "", ""


def _claim(kubectl: Kubectl, name: str) -> tuple[Object | None, tuple[str, str]]:
    claim = kubectl.find("persistentvolumeclaim", name)
    return claim, _said_of(kubectl, claim)


def _said_of(kubectl: Kubectl, claim: Object | None) -> tuple[str, str]:
    if claim is None or claim.get("status", {}).get("phase") != _NOT_BOUND:
        return "", ""
    found = _events(kubectl, f"involvedObject.uid={claim['metadata']['uid']}")
    found.sort(key=lambda one: one.get("lastTimestamp") or "")
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


def why_not_begun(kubectl: Kubectl, job: Object, pods: Sequence[Object]) -> str:
    """Why no pod was made for a Job: only an event says so, or Kueue's own object. "" where neither
    does.
    """
    if kube_pods.is_suspended(job):
        return _why_queued(kubectl, job)
    about = f"involvedObject.uid={job['metadata']['uid']},reason=FailedCreate"
    return kube_pods.why_refused(_events(kubectl, about), pods)


def told_of_ends(kubectl: Kubectl) -> list[dict[str, Any]]:
    """The events of pods that were ended and of which nothing else is left."""
    about = "involvedObject.kind=Pod,reason="
    reasons = kube_pods.TOLD_BY_EVENTS
    return [one for reason in reasons for one in _events(kubectl, about + reason)]


def _events(kubectl: Kubectl, about: str) -> list[dict[str, Any]]:
    """Of the last hour. Who may not read them is told less."""
    with contextlib.suppress(BoxcarError):
        said = kubectl.run("get", "events", "--field-selector", about, "-o", "json")
        return list(json.loads(said)["items"])
    return []


def _why_queued(kubectl: Kubectl, job: Object) -> str:
    """Why Kueue does not let it begin, in its own words."""
    if KUEUE_QUEUE not in job["metadata"].get("labels", {}):
        return ""
    found: Sequence[Object] = ()
    with contextlib.suppress(BoxcarError):
        found = kubectl.items(_WORKLOADS, {_OF_JOB: job["metadata"]["uid"]})
    return next(filter(None, map(kube_pods.why_queued, found)), "")
