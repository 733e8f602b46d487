"""What a cluster's answers mean, without a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from plans import make_plan

from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.places import kube_rules
from boxcar.laptop.places.kube_facts import NEEDED, KubeFacts
from boxcar.laptop.project.profiles.kube_options import KubeOptions
from boxcar.shared.sentence import in_language

BOUND = {
    "metadata": {"name": "tier"},
    "spec": {"accessModes": ["ReadWriteMany"]},
    "status": {"phase": "Bound"},
}
PENDING = BOUND | {"status": {"phase": "Pending"}}


def facts(**changes: Any) -> KubeFacts:
    usual: dict[str, Any] = {
        "version": (1, 32),
        "claim": BOUND,
        "claim_said": ("", ""),
        "job_refusal": "",
        "pod_refusal": "",
        "over_quota": "",
        "quotas": (),
        "allowed": dict.fromkeys(NEEDED, True),
        "node_gpus": {"node-1": 4},
        "queue": None,
        "queue_problem": "",
    }
    return KubeFacts(**(usual | changes))


def job(**limits: str) -> dict[str, Any]:
    container = {"name": "agent", "resources": {"limits": limits}}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    named = {"metadata": {"name": "team"}, "spec": {"hard": hard, **spec}}
    return named | {"status": {"hard": hard, "used": used or {}}}


def rows(given: KubeFacts, jobs: dict[str, Any] | None = None, **options: Any) -> dict[str, Row]:
    """By what each is about; of one queue that asks for 8 CPUs."""
    named = {"gpus": 2, "claim": "tier"} | options
    found = kube_rules.judge(
        make_plan(), KubeOptions(**named), given, jobs or {"queue_1": job(cpu="8")}
    )
    return {row.what: row for row in found}


def test_what_the_cluster_has_and_allows_is_fine() -> None:
    assert {row.verdict for row in rows(facts()).values()} == {"ok"}


@pytest.mark.parametrize(
    ("changes", "what", "verdict", "reason"),
    [
        ({"version": (1, 25)}, "Kubernetes", "warn", "cannot tell ends apart"),
        ({"claim": None}, "claim", "refuse", "no such PersistentVolumeClaim"),
        ({"claim": PENDING}, "claim", "warn", "kubectl describe pvc"),
        (
            {"claim": PENDING, "claim_said": ("WaitForFirstConsumer", "waiting for …")},
            "claim",
            "ok",
            "bound with the first pod",
        ),
        (
            {"claim": PENDING, "claim_said": ("ProvisioningFailed", "no class nfs")},
            "claim",
            "refuse",
            "no class nfs",
        ),
        (
            {"claim": PENDING, "claim_said": ("ExternalProvisioning", "waiting for a volume")},
            "claim",
            "warn",
            "waiting for a volume",
        ),
        ({"claim": BOUND | {"status": {"phase": "Lost"}}}, "claim", "refuse", "volume is gone"),
        (
            {"claim": BOUND | {"metadata": {"name": "tier", "deletionTimestamp": "2026"}}},
            "claim",
            "refuse",
            "being deleted",
        ),
        ({"allowed": {"create jobs": False}}, "access", "refuse", "ask the cluster's admins"),
        ({"job_refusal": "no"}, "Job", "refuse", "no"),
        ({"pod_refusal": "root is not allowed"}, "pod", "refuse", "root is not allowed"),
        ({"over_quota": "the quota few is used up"}, "quota", "warn", "few is used up"),
        ({"node_gpus": None}, "GPUs", "ok", "may not list"),
        ({"node_gpus": {}}, "GPUs", "warn", "device plugin"),
        ({"node_gpus": {"a": 1, "b": 0}}, "GPUs", "warn", "asks for 2"),
    ],
)
def test_each_answer_has_its_row(
    changes: dict[str, Any], what: str, verdict: str, reason: str
) -> None:
    row = rows(facts(**changes))[what]
    assert row.verdict == verdict
    assert reason in str(row.reason)


@pytest.mark.parametrize(
    ("mode", "queues", "verdict", "reason"),
    [
        ("ReadWriteOnce", 1, "ok", "one node has it at a time"),
        ("ReadWriteOnce", 2, "refuse", "one queue on one node alone"),
        ("ReadWriteOncePod", 1, "refuse", "must be ReadWriteMany"),
        ("ReadOnlyMany", 1, "refuse", "must be ReadWriteMany"),
    ],
)
def test_a_claim_of_one_node_is_for_one_queue(
    mode: str, queues: int, verdict: str, reason: str
) -> None:
    of_one = BOUND | {"spec": {"accessModes": [mode]}}
    plan = make_plan()
    plan = replace(plan, queues={f"queue_{n}": f"box-{n}" for n in range(queues)})
    options = KubeOptions(claim="tier", gpus=0)
    rows = kube_rules.judge(plan, options, facts(claim=of_one), {})
    (row,) = [row for row in rows if row.what == "claim"]
    assert row.verdict == verdict
    assert reason in str(row.reason)


def test_a_run_without_a_gpu_asks_for_no_nodes() -> None:
    assert "GPUs" not in rows(facts(node_gpus=None), gpus=0)


@pytest.mark.parametrize(
    ("given", "verdict", "reason"),
    [
        (quota({"requests.cpu": "32"}), None, ""),
        (quota({"requests.cpu": "7500m"}), "refuse", "asks for 8"),
        (quota({"limits.cpu": "24"}, {"limits.cpu": "10"}), "warn", "room for 1 of 2"),
        (quota({"pods": "9"}, {"pods": "9"}), "warn", "room for 0 of 2"),
        (quota({"cpu": "1"}, scopes=["BestEffort"]), None, ""),
        (quota({"requests.storage": "1Gi"}), None, ""),
    ],
)
def test_a_quota_that_a_pod_never_fits_into_is_refused_and_a_full_one_makes_it_wait(
    given: dict[str, Any], verdict: str | None, reason: str
) -> None:
    jobs = {"queue_1": job(cpu="8"), "queue_2": job(cpu="8")}
    row = rows(facts(quotas=(given,)), jobs).get("quota")
    assert (row and row.verdict) == verdict
    assert reason in str(row and row.reason)


def test_memory_is_counted_in_bytes() -> None:
    jobs = {"queue_1": job(memory="64Gi")}
    assert "quota" not in rows(facts(quotas=(quota({"memory": "65536Mi"}),)), jobs)
    row = rows(facts(quotas=(quota({"memory": "64G"}),)), jobs)["quota"]
    assert row.verdict == "refuse"


def test_kueue_has_to_be_there_with_its_queue() -> None:
    assert "Kueue" not in rows(facts())
    there = {"status": {"conditions": [{"type": "Active", "status": "True"}]}}
    assert rows(facts(queue=there), kueue="team")["Kueue"].verdict == "ok"
    assert "kubectl get queues" in str(rows(facts(), kueue="team")["Kueue"].reason)
    problem = facts(queue_problem="no resource type")
    assert "no resource type" in str(rows(problem, kueue="team")["Kueue"].reason)
    stopped = {"type": "Active", "status": "False", "message": "ClusterQueue is stopped"}
    off = rows(facts(queue={"status": {"conditions": [stopped]}}), kueue="team")["Kueue"]
    assert (off.verdict, "is stopped" in str(off.reason)) == ("warn", True)


def test_the_rows_are_in_the_readers_language() -> None:
    assert "节点" in in_language(rows(facts(node_gpus={}))["GPUs"].reason, "zh")


@pytest.mark.parametrize("key", ["memory", "shm"])
def test_an_amount_of_memory_has_its_unit(key: str) -> None:
    assert getattr(KubeOptions.model_validate({key: "64Mi"}), key) == "64Mi"
    with pytest.raises(ValueError, match="an amount with its unit, such as 64Gi"):
        KubeOptions.model_validate({key: "64"})
