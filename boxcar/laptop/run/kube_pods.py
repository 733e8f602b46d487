"""What a cluster's objects say of a queue: whether its agent runs, waits, or how it ended. Pure.

The reason and not the phase: `Pending` is true of a pod whose image does not exist, and of one that
begins in a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from boxcar.laptop.hosts.scheduled import JobEnd, Scheduled
from boxcar.laptop.release.kube_objects import KUEUE_QUEUE, NOT_AGAIN
from boxcar.shared.process import exit_codes

Object = Mapping[str, Any]

_ENDED = ("Succeeded", "Failed")
_OURS = ("agent", "helper")
_BEGINS = ("ContainerCreating", "PodInitializing")


def is_finished(job: Object) -> bool:
    """Whether nothing of the Job, or of the JobSet, will start again."""
    return any(
        one["type"] in ("Complete", "Completed", "Failed") and one["status"] == "True"
        for one in job.get("status", {}).get("conditions", [])
    )


def is_at_work(one: Object) -> bool:
    """Whether it is a Job that starts its agent, or will; one that is being deleted does not."""
    is_ending = "deletionTimestamp" in one["metadata"]
    return one["kind"] in ("Job", "JobSet") and not is_ending and not is_finished(one)


def is_running(pod: Object) -> bool:
    """Whether its container has begun and has not ended. One that is to end runs until then."""
    is_running = pod.get("status", {}).get("phase") == "Running"
    return is_running and any("running" in state for state in _states(pod))


def has_begun(pod: Object) -> bool:
    """Whether a container of it has run, so that there is a log."""
    return any("running" in state or "terminated" in state for state in _states(pod))


def has_ended(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in _ENDED


def will_finish(pods: Sequence[Object]) -> bool:
    """Whether the Job ends for good once its controller has seen how its last pod ended."""
    newest = max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)
    if newest is None or not has_ended(newest) or _taken(newest):
        return False
    return _terminated(newest).get("exitCode") in (exit_codes.DONE, *NOT_AGAIN)


def _states(pod: Object) -> list[Object]:
    """Of our own container: a cluster may add others to each pod."""
    found = pod.get("status", {}).get("containerStatuses", [])
    own = [one for one in found if one.get("name") in _OURS]
    return [one.get("state", {}) for one in own or found]


def _terminated(pod: Object) -> Object:
    return next((state["terminated"] for state in _states(pod) if "terminated" in state), {})


def _taken(pod: Object) -> Object | None:
    """Why the cluster took it away, if it did."""
    return next((one for one in _conditions(pod) if one["type"] == "DisruptionTarget"), None)


def is_suspended(job: Object) -> bool:
    """It was made so for Kueue, Kueue has taken its room for another's, or a person did it."""
    return bool(job["spec"].get("suspend"))


def scheduled(job: Object, pods: Sequence[Object], refused: str = "") -> Scheduled | None:
    """That the Job is to start its agent, and why it has not; None where it runs or has ended.
    `refused`: why the cluster last made no pod for it, such as a used-up quota, or why Kueue does
    not let it begin.
    """
    left = [pod for pod in pods if not has_ended(pod)]
    if is_finished(job) or any(is_running(pod) for pod in left) or will_finish(pods):
        return None
    name = str(job["metadata"]["name"])
    if is_suspended(job):
        queue = job["metadata"].get("labels", {}).get(KUEUE_QUEUE, "")
        return Scheduled(name, refused, kueue=queue) if queue else Scheduled(name, "Suspended")
    reasons = [reason for pod in left for reason in _reasons(pod)]
    if not left and refused:
        return Scheduled(name, f"FailedCreate: {refused}")
    return Scheduled(name, next(iter(reasons), "Pending"))


def not_begun(job: Object, pods: Sequence[Object], refused: str = "") -> list[dict[str, str]]:
    """Which pods of a Job will not begin by themselves (`pod`), and why (`reason`). Where the
    cluster has made no pod of it for the reason `refused`, the Job is named instead.
    """
    left = [pod for pod in pods if not has_ended(pod)]
    stuck = [(pod, why_stuck(pod)) for pod in left]
    if refused:
        stuck.append((job, f"FailedCreate: {refused}"))
    return [{"pod": one["metadata"]["name"], "reason": reason} for one, reason in stuck if reason]


def why_refused(events: Sequence[Object], pods: Sequence[Object]) -> str:
    """What the last event says of a pod that was not made; "" where one was made since then."""
    last = max(events, key=_said_at, default=None)
    made_at = max((str(pod["metadata"]["creationTimestamp"]) for pod in pods), default="")
    return str(last["message"]) if last and _said_at(last) >= made_at else ""


def _said_at(event: Object) -> str:
    return str(event.get("lastTimestamp") or event["metadata"].get("creationTimestamp", ""))


def _reasons(pod: Object) -> Iterator[str]:
    status = pod.get("status", {})
    for state in _states(pod):
        reason = state.get("waiting", {}).get("reason")
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


# Of pods that a scheduler or an admin ends, only an event is left.
TOLD_BY_EVENTS = ("Preempted", "TaintManagerEviction")
# What the agent's own end looks like: it has said more in its journal.
_BY_ITSELF = ("Completed", "Error")
# The Job has failed by an exit code of the agent's.
_BY_ITS_CODE = "PodFailurePolicy"
_SIGNALS = 128
_NAMES = {"PreemptionByScheduler": "Preempted"}


def ends(name: str, objects: Sequence[Object], events: Sequence[Object]) -> tuple[JobEnd, ...]:
    """How the pods of the Job of that name ended, and the Job itself, oldest first. `objects`: the
    Jobs and pods of its queue; `events` may be of others, too.
    """
    found = [end for one in objects for end in (_end_of_pod(one), _end_of_job(one)) if end]
    known = {one["metadata"]["name"] for one in objects if has_ended(one)}
    found += [
        JobEnd(_utc(event.get("lastTimestamp") or event.get("eventTime") or ""), _what(event))
        for event in events
        if re.fullmatch(rf"{re.escape(name)}-[a-z0-9]+", event["involvedObject"]["name"])
        and event["reason"] in TOLD_BY_EVENTS
        and event["involvedObject"]["name"] not in known
    ]
    return tuple(sorted(found, key=lambda end: end.at))


def _end_of_pod(pod: Object) -> JobEnd | None:
    status = pod.get("status", {})
    if pod["kind"] != "Pod" or not has_ended(pod):
        return None
    container, taken = _terminated(pod), _taken(pod)
    at = _utc(container.get("finishedAt") or (taken or pod["metadata"]).get(_CHANGED) or "")
    if status.get("reason"):
        return JobEnd(at, _what(status))
    if taken:
        return JobEnd(at, _what(taken))
    code, reason = int(container.get("exitCode", 0)), str(container.get("reason", ""))
    if reason in _BY_ITSELF and code <= _SIGNALS:
        return None
    said = str(container.get("message") or "").strip() or f"exit code {code}"
    return JobEnd(at, f"{reason} ({said})")


def _end_of_job(job: Object) -> JobEnd | None:
    failed = [one for one in _conditions(job) if job["kind"] == "Job" and one["type"] == "Failed"]
    if not failed or failed[0].get("reason") == _BY_ITS_CODE:
        return None
    return JobEnd(_utc(failed[0].get(_CHANGED, "")), _what(failed[0]), is_of_job=True)


_CHANGED = "lastTransitionTime"


def _conditions(one: Object) -> list[Object]:
    return [
        each for each in one.get("status", {}).get("conditions", []) if each["status"] == "True"
    ]


def _what(said: Object) -> str:
    reason = _NAMES.get(str(said["reason"]), str(said["reason"]))
    return f"{reason} ({said['message']})" if said.get("message") else reason


def _utc(at: str) -> str:
    """As our own instants are spelled, so that they are in order beside them."""
    found = re.fullmatch(r"(.{19})(?:\.(\d+))?Z", at)
    return f"{found[1]}.{(found[2] or '').ljust(3, '0')[:3]}Z" if found else at
