"""What `audit` says of a cluster that has not what a run asks for. The real kubectl asks, and the
questions create nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kube_cluster import KubeCluster
from kube_objects import applied, claim
from plans import make_plan
from waiting import until

from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.places import kube_facts, kube_rules
from boxcar.laptop.project.profiles.kube_options import KubeOptions
from boxcar.laptop.release import kube_objects
from boxcar.laptop.release.kube_objects import Owner

GPUS = "requests.nvidia.com/gpu"


@pytest.fixture(autouse=True)
def nothing_is_made(kube: KubeCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in kube.env.items():
        monkeypatch.setenv(name, value)
    yield
    kube.make("no-faults")
    for node in ("node-1", "node-2"):
        kube.make("room", node=node, **{"nvidia.com/gpu": "4"})
    assert kube.all("jobs,pods,secrets") == []


def rows(**named: Any) -> dict[str, Row]:
    """By what each is about; of two queues that are to be started."""
    options = KubeOptions(**({"claim": "tier"} | named))
    jobs = {
        queue: kube_objects.job(
            Owner("tiny", "tier", "/checkpoints"),
            queue,
            release="/checkpoints/r",
            begin=("0",),
            tier="/checkpoints",
            credentials="/root/.boxcar/credentials-tiny.json",
            image="python:3.12",
            grace_s=60.0,
            options=options,
            version=(1, 37),
        )
        for queue in ("queue_1", "queue_2")
    }
    kubectl = Kubectl(None, None)
    facts = kube_facts.ask(kubectl, options, kubectl.server_version(), jobs)
    return {row.what: row for row in kube_rules.judge(make_plan(), options, facts, jobs)}


def quota(**hard: str) -> dict[str, Any]:
    named = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}}
    return named | {"spec": {"hard": hard}}


def test_nodes_without_enough_gpus_are_told_of_and_one_who_may_not_list_them_goes_on(
    kube: KubeCluster,
) -> None:
    assert rows(gpus=3)["GPUs"].found == "nodes with 3 nvidia.com/gpu or more: 2"
    for node in ("node-1", "node-2"):
        kube.make("room", node=node, **{"nvidia.com/gpu": "2"})
    assert rows(gpus=3)["GPUs"].found == "at most 2 nvidia.com/gpu on a node"
    kube.make("deny", words="list nodes")
    row = rows(gpus=3)["GPUs"]
    assert (row.verdict, row.reason) == ("ok", "you may not list the cluster's nodes")


def test_a_quota_is_compared_with_what_the_queues_ask_for(kube: KubeCluster) -> None:
    with applied(kube, quota(**{GPUS: "3"})):
        assert "room for 1 of 2 Jobs now" in str(rows(gpus=2)["quota"].reason)
    with applied(kube, quota(**{GPUS: "1"})):
        row = rows(gpus=2)["quota"]
        assert (row.verdict, row.found) == ("refuse", f"team: {GPUS} 1")
        kube.make("deny", words="list resourcequotas")
        assert "the quota team is used up (wanted:" in str(rows(gpus=2)["quota"].reason)


def test_a_quota_that_wants_limits_is_told_of_before_a_job_waits_for_ever(
    kube: KubeCluster,
) -> None:
    with applied(kube, quota(**{"limits.cpu": "64"})):
        said = str(rows()["pod"].reason)
        assert "the quota team wants each pod to say what it needs (limits.cpu for: agent)" in said
        assert "pod" not in rows(cpu="8")


def test_a_claim_that_no_volume_can_be_made_for_is_refused_with_its_reason(
    kube: KubeCluster,
) -> None:
    assert "no such PersistentVolumeClaim" in str(rows()["claim"].reason)
    with applied(kube, claim("tier", storage_class="never")):
        until(lambda: "ProvisioningFailed" in kube.kubectl("get", "events", "-o", "yaml"))
        said = str(rows()["claim"].reason)
        assert "no volume can be made for it: failed to provision volume" in said


def test_kueue_has_to_be_installed_and_to_have_the_queue(kube: KubeCluster) -> None:
    assert "Kueue does not answer" in str(rows(kueue="team-a")["Kueue"].reason)
    kube.make("install", group="kueue.x-k8s.io")
    assert "no such LocalQueue" in str(rows(kueue="team-a")["Kueue"].reason)
    named = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue"}
    queue = {**named, "metadata": {"name": "team-a"}, "spec": {"clusterQueue": "all"}}
    with applied(kube, queue):
        assert rows(kueue="team-a")["Kueue"].verdict == "ok"
