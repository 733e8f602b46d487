"""How the cluster says that an agent ended: objects as kubelets and controllers write them."""

from __future__ import annotations

from typing import Any

import pytest

from boxcar.laptop.hosts.scheduled import JobEnd
from boxcar.laptop.run import kube_pods
from boxcar.laptop.run.condition import condition_of
from boxcar.laptop.run.view import QueueView
from boxcar.shared.state import Session, State

AT = "2026-11-29T09:31:04Z"
OURS = "2026-11-29T09:31:04.000Z"
LOW = "The node was low on resource: memory."


def pod(terminated: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    ended = {"finishedAt": AT} | (terminated or {"exitCode": 137, "reason": "Error"})
    found = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": ended}}]}
    return {"kind": "Pod", "metadata": {"name": "j-x1"}, "status": found | status}


def condition(kind: str, reason: str, message: str) -> dict[str, str]:
    told = {"reason": reason, "message": message, "lastTransitionTime": AT}
    return {"type": kind, "status": "True"} | told


def job(reason: str, message: str) -> dict[str, Any]:
    conditions = [condition("FailureTarget", reason, ""), condition("Failed", reason, message)]
    return {"kind": "Job", "metadata": {"name": "j"}, "status": {"conditions": conditions}}


def event(reason: str, message: str, about: str = "j-gone") -> dict[str, Any]:
    told = {"reason": reason, "message": message, "lastTimestamp": AT}
    return told | {"involvedObject": {"kind": "Pod", "name": about}}


@pytest.mark.parametrize(
    ("one", "what"),
    [
        (pod({"exitCode": 137, "reason": "OOMKilled"}), "OOMKilled (exit code 137)"),
        (pod({"exitCode": 137, "reason": "Error"}), "Error (exit code 137)"),
        (
            pod({"exitCode": 137, "reason": "Error", "message": "the agent ended with 137\n"}),
            "Error (the agent ended with 137)",
        ),
        (
            pod({"exitCode": 128, "reason": "StartError", "message": "no such file: /bin/bash"}),
            "StartError (no such file: /bin/bash)",
        ),
        (pod(reason="Evicted", message=LOW), f"Evicted ({LOW})"),
        (
            pod(conditions=[condition("DisruptionTarget", "PreemptionByScheduler", "for another")]),
            "Preempted (for another)",
        ),
        (
            pod(conditions=[condition("DisruptionTarget", "DeletionByTaintManager", "taint")]),
            "DeletionByTaintManager (taint)",
        ),
    ],
)
def test_a_pod_has_ended_by_its_reason_and_not_its_phase(one: dict[str, Any], what: str) -> None:
    assert kube_pods.ends("j", [one], []) == (JobEnd(OURS, what),)


@pytest.mark.parametrize("code", [0, 1, 43, 75, 85])
def test_what_the_agent_itself_ended_with_is_left_to_its_journal(code: int) -> None:
    reason = "Error" if code else "Completed"
    one = pod({"exitCode": code, "reason": reason, "message": "the agent ended"})
    assert kube_pods.ends("j", [one, job("PodFailurePolicy", "exit code 1")], []) == ()


def test_a_job_that_the_cluster_has_failed_says_why() -> None:
    said = "Job was active longer than specified deadline"
    (end,) = kube_pods.ends("j", [job("DeadlineExceeded", said)], [])
    assert end.sentence == (
        f"its job failed: DeadlineExceeded ({said}): the cluster limits how long a Job may run: "
        "ask its admins"
    )


def test_of_a_pod_that_is_gone_an_event_tells_and_of_another_job_none() -> None:
    said = "Preempted by pod 1-2-3 on node n1"
    events = [event("Preempted", said), event("Preempted", said, "j-b-x"), event("Killing", "")]
    assert kube_pods.ends("j", [], events) == (JobEnd(OURS, f"Preempted ({said})"),)


def test_what_a_container_that_the_cluster_added_does_is_not_the_agents() -> None:
    agent = {"name": "agent", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    mesh = {"name": "mesh", "state": {"running": {}}}
    found = {"phase": "Running", "containerStatuses": [mesh, agent]}
    assert not kube_pods.is_running({"kind": "Pod", "metadata": {}, "status": found})


@pytest.mark.parametrize(
    ("code", "is_over"), [(0, True), (1, True), (43, True), (75, False), (85, False), (137, False)]
)
def test_a_job_whose_agent_has_just_ended_for_good_waits_for_nothing(
    code: int, is_over: bool
) -> None:
    one = pod({"exitCode": code, "reason": "Error"})
    one["metadata"]["creationTimestamp"] = AT
    begun: dict[str, Any] = {"kind": "Job", "metadata": {"name": "j"}, "spec": {}, "status": {}}
    assert kube_pods.will_finish([one]) is is_over
    assert (kube_pods.scheduled(begun, [one]) is None) is is_over


def test_what_the_agent_could_not_say_stands_in_the_queues_condition() -> None:
    ends = (JobEnd(OURS, "Evicted (low)"),)
    session = Session("2026-11-29T09:30:00.000Z", 7, "r", "a", 0)
    silent = QueueView("q", "a", state=State(session=session), ends=ends)
    assert condition_of(silent, OURS).sentence.endswith("; its last pod ended: Evicted (low)")
    again = QueueView("q", "a", state=State(session=session), is_alive=True, ends=ends)
    assert condition_of(again, "2026-11-29T09:40:00.000Z").sentence == (
        "its agent is starting up or shutting down; its last pod ended: Evicted (low)"
    )
    later = Session("2026-11-29T09:32:00.000Z", 7, "r", "a", 0)
    begun = QueueView("q", "a", state=State(session=later), ends=ends)
    assert "Evicted" not in condition_of(begun, OURS).sentence


def made(at: str, phase: str) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": at}, "status": {"phase": phase}}


def test_a_refusal_counts_until_a_pod_was_made_after_it() -> None:
    old, new = (
        {"metadata": {}, "lastTimestamp": f"2026-01-01T00:00:0{at}Z", "message": said}
        for at, said in ((5, "old"), (9, "new"))
    )
    ended = made("2026-01-01T00:00:07Z", "Failed")
    assert kube_pods.why_refused([new, old], []) == "new"
    assert kube_pods.why_refused([new, old], [ended]) == "new"
    assert kube_pods.why_refused([old], [ended]) == ""
    assert kube_pods.why_refused([], [ended]) == ""


def test_a_queue_whose_pods_have_all_ended_waits_for_what_the_cluster_refuses() -> None:
    waiting = {"metadata": {"name": "j"}, "spec": {}, "status": {}}
    ended = [made("2026-01-01T00:00:07Z", "Failed")]
    waits = kube_pods.scheduled(waiting, ended, "exceeded quota: few")
    assert waits is not None and "ask for less, or raise the quota" in str(waits.sentence)


def test_of_several_pods_those_are_named_that_do_not_begin_by_themselves() -> None:
    wait = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
    stuck = pod(phase="Pending", containerStatuses=[], conditions=[wait])
    begins = pod(
        phase="Pending",
        containerStatuses=[{"state": {"waiting": {"reason": "ContainerCreating"}}}],
    )
    set_of = {"kind": "Job", "metadata": {"name": "j"}}
    assert kube_pods.not_begun(set_of, [stuck, begins, pod()]) == [
        {"pod": "j-x1", "reason": "Unschedulable: no"}
    ]
    assert kube_pods.not_begun(set_of, [pod()], "exceeded quota") == [
        {"pod": "j", "reason": "FailedCreate: exceeded quota"}
    ]
