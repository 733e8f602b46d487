"""What a cluster's objects say of a queue that has no pod."""

from __future__ import annotations

from typing import Any

from boxcar.laptop.run import kube_pods


def event(at: str, message: str) -> dict[str, Any]:
    return {"metadata": {}, "lastTimestamp": at, "message": message}


def pod(made_at: str, phase: str) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": made_at}, "status": {"phase": phase}}


def test_a_refusal_counts_until_a_pod_was_made_after_it() -> None:
    old, new = event("2026-01-01T00:00:05Z", "old"), event("2026-01-01T00:00:09Z", "new")
    ended = pod("2026-01-01T00:00:07Z", "Failed")
    assert kube_pods.why_refused([new, old], []) == "new"
    assert kube_pods.why_refused([new, old], [ended]) == "new"
    assert kube_pods.why_refused([old], [ended]) == ""
    assert kube_pods.why_refused([], [ended]) == ""


def test_a_queue_whose_pods_have_all_ended_waits_for_what_the_cluster_refuses() -> None:
    job = {"metadata": {"name": "j"}, "spec": {}, "status": {}}
    ended = [pod("2026-01-01T00:00:07Z", "Failed")]
    waits = kube_pods.scheduled(job, ended, "exceeded quota: few")
    assert waits is not None and "ask for less, or raise the quota" in str(waits.sentence)
    assert kube_pods.scheduled(job, [pod("2026-01-01T00:00:08Z", "Pending")], "x") is not None
