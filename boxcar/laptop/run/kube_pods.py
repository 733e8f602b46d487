"""What a cluster's objects say of a queue: whether its agent runs, waits, or has ended. Pure.

The reason and not the phase: `Pending` is true of a pod whose image does not exist, and of one that
begins in a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from boxcar.laptop.hosts.scheduled import Scheduled
from boxcar.laptop.release.kube_objects import KUEUE_QUEUE

Object = Mapping[str, Any]

_ENDED = ("Succeeded", "Failed")
_BEGINS = ("ContainerCreating", "PodInitializing")


def is_finished(job: Object) -> bool:
    """Whether nothing of the Job will start again."""
    return any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True"
        for one in job.get("status", {}).get("conditions", [])
    )


def is_at_work(one: Object) -> bool:
    """Whether it is a Job that starts its agent, or will; one that is being deleted does not."""
    is_ending = "deletionTimestamp" in one["metadata"]
    return one["kind"] == "Job" and not is_ending and not is_finished(one)


def is_running(pod: Object) -> bool:
    """Whether its container has begun and has not ended. One that is to end runs until then."""
    return pod.get("status", {}).get("phase") == "Running" and any(
        "running" in one.get("state", {}) for one in pod["status"].get("containerStatuses", [])
    )


def has_ended(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in _ENDED


def is_suspended(job: Object) -> bool:
    """It was made so for Kueue, Kueue has taken its room for another's, or a person did it."""
    return bool(job["spec"].get("suspend"))


def scheduled(job: Object, pods: Sequence[Object], refused: str = "") -> Scheduled | None:
    """That the Job is to start its agent, and why it has not; None where it runs or has ended.
    `refused`: why the cluster last made no pod for it, such as a used-up quota, or why Kueue does
    not let it begin.
    """
    left = [pod for pod in pods if not has_ended(pod)]
    if is_finished(job) or any(is_running(pod) for pod in left):
        return None
    name = str(job["metadata"]["name"])
    if is_suspended(job):
        queue = job["metadata"].get("labels", {}).get(KUEUE_QUEUE, "")
        return Scheduled(name, refused, kueue=queue) if queue else Scheduled(name, "Suspended")
    reasons = [reason for pod in left for reason in _reasons(pod)]
    if not left and refused:
        return Scheduled(name, f"FailedCreate: {refused}")
    return Scheduled(name, next(iter(reasons), "Pending"))


def _reasons(pod: Object) -> Iterator[str]:
    status = pod.get("status", {})
    for one in status.get("containerStatuses", []):
        reason = one.get("state", {}).get("waiting", {}).get("reason")
        if reason and reason not in _BEGINS:
            yield str(reason)
    for one in status.get("conditions", []):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            yield f"{one.get('reason', '')}: {one.get('message', '')}".strip(": ")


def why_stuck(pod: Object) -> str:
    """Why it will not start by itself; "" where it may."""
    return next(iter(_reasons(pod)), "") if pod else ""


def why_queued(workload: Object) -> str:
    """Why Kueue has not let it begin, in its own words: "" where it has, or has not said."""
    for one in workload.get("status", {}).get("conditions", []):
        if one["type"] == "QuotaReserved" and one["status"] == "False":
            return str(one.get("message", ""))
    return ""
