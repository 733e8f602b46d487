"""What a person may have wrong on a cluster: each is told in a sentence, nothing is submitted, and
once it is mended the same command goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kube_cluster import KubeCluster, kube_cluster
from kube_objects import claim
from on_kube import OnKube, on_kube
from waiting import until

ONE = {"a": ["configs/one.json t"]}


@pytest.fixture(autouse=True)
def nothing_stays(kube: KubeCluster) -> Iterator[None]:
    yield
    kube.make("no-faults")
    kube.make("image", name="python", **{"is": ""})
    kube.kubectl("delete", "job,pod,secret", "-l", "boxcar-run=tiny", "--grace-period=0", "--force")


def change(project: OnKube, **kubernetes: str) -> None:
    path = project.root / "profiles" / "lab.yaml"
    profile = yaml.safe_load(path.read_text())
    profile["kubernetes"] |= kubernetes
    path.write_text(yaml.safe_dump(profile))


def is_verified(project: OnKube, cell: str) -> bool:
    return (project.tier / "cells" / cell / "manifest.json").exists()


def assert_goes_on(project: OnKube) -> None:
    """The same command, once it is mended."""
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: is_verified(project, "one"), lambda: project.boxcar("status"))
    assert project.types("a", "one").count("cell.started") == 1


def test_kubectl_that_cannot_ask_a_cluster_says_why_and_what_to_type(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, ONE)
    away = json.dumps(yaml.safe_load((kube.folder / "kubeconfig").read_text()))
    files = {
        "none": json.dumps({"apiVersion": "v1", "kind": "Config"}),
        "away": away.replace(str(kube.port), "1"),
        "torn": "a: [",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    nowhere = {"PATH": str(tmp_path / "bin")}
    (tmp_path / "bin").mkdir()
    for env, code, told, in_chinese in (
        (
            {"KUBECONFIG": str(tmp_path / "none")},
            2,
            "no cluster to ask. Set KUBECONFIG",
            "没有可问",
        ),
        ({"KUBECONFIG": str(tmp_path / "away")}, 1, "refuses connections. Check your", "拒绝连接"),
        ({"KUBECONFIG": str(tmp_path / "torn")}, 2, "kubectl cannot read", "读不了"),
        (nowhere, 2, "kubectl is not installed on this machine", "kubectl"),
    ):
        said = project.boxcar("launch", "--no-smoke", env=env)
        assert (said.code, said.err.count(told)) == (code, 1), said
        zh = project.boxcar("launch", "--no-smoke", env=env | {"LC_ALL": "zh_CN.UTF-8"})
        assert in_chinese in zh.err and told not in zh.err, zh
    change(project, context="elsewhere")
    said = project.boxcar("launch", "--no-smoke")
    assert said.code == 2 and "no context elsewhere. Name one of these" in said.err
    assert kube.all("jobs,pods,secrets") == []


def test_a_namespace_that_is_missing_or_being_deleted_is_named(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, ONE)
    change(project, namespace="gone")
    said = project.boxcar("launch", "--no-smoke")
    assert said.code == 1 and "kubectl create namespace gone" in said.err, said
    kube.kubectl("create", "namespace", "gone")
    kube.kubectl(
        "patch", "namespace", "gone", "-p", '{"metadata": {"finalizers": ["kubernetes", "a/b"]}}'
    )
    kube.kubectl("delete", "namespace", "gone", "--wait=false")
    said = project.boxcar("launch", "--no-smoke")
    assert said.code == 1 and "the namespace gone is being deleted" in said.err, said
    kube.kubectl("patch", "namespace", "gone", "-p", '{"metadata": {"finalizers": []}}')
    assert kube.all("jobs,pods,secrets") == []


@pytest.mark.faults
def test_of_a_namespace_deleted_with_its_claim_down_ends_by_a_word_for_each_cell(
    kube: KubeCluster, tmp_path: Path
) -> None:
    kube.kubectl("create", "namespace", "mine")
    project = on_kube(tmp_path, kube, {"a": ["configs/one.json t"], "b": ["configs/two.json t"]})
    kube.kubectl("create", "-n", "mine", "-f", "-", stdin=json.dumps(claim(project.claim)))
    change(project, namespace="mine")
    project.write_config("one", hold_at=1, until="/checkpoints/let-go")
    project.boxcar("launch", "--no-smoke").ended(0)
    kube.kubectl("delete", "namespace", "mine")
    said = project.boxcar("status")
    assert said.err.count("the cluster has no namespace mine") == 1, said
    # Nothing is given up without a person's word for each cell.
    gone = ("--gone", "/checkpoints", "--because", "deleted")
    assert "cannot tell" not in project.boxcar("down", *gone).err
    project.boxcar("verify")
    cells = ("--abandon", "one", "--abandon", "two")
    project.boxcar("down", *gone, *cells, typed="tiny\n").ended(0)


def test_a_claim_that_is_missing_leaves_no_pod_behind(kube: KubeCluster, tmp_path: Path) -> None:
    project = on_kube(tmp_path, kube, ONE)
    change(project, claim="nope")
    said = project.boxcar("launch", "--no-smoke")
    assert said.code == 1 and "no such PersistentVolumeClaim: create it" in said.err, said
    said = project.boxcar("status")
    assert said.err.count('persistentvolumeclaim "nope" not found') == 1, said
    assert kube.all("jobs,pods,secrets") == []


@pytest.mark.faults
def test_a_pool_on_a_claim_that_one_node_has_is_refused(kube: KubeCluster, tmp_path: Path) -> None:
    project = on_kube(tmp_path, kube, ONE)
    project.write_job(queues={"queues/a.txt": ["a", "b"]})
    kube.kubectl("delete", "pvc", project.claim)
    kube.apply(claim(project.claim, mode="ReadWriteOnce", storage_class="disk"))
    said = project.boxcar("launch", "--no-smoke")
    assert (said.code, said.err.count("it must be ReadWriteMany")) == (1, 1), said
    assert kube.all("jobs,secrets") == []


@pytest.mark.faults
def test_a_claim_that_does_not_bind_is_waited_for_and_found_again(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, ONE)
    kube.kubectl("delete", "pvc", project.claim)
    kube.apply(claim(project.claim, storage_class="never"))
    said = project.boxcar("launch", "--no-smoke")
    assert said.code != 0 and "unbound immediate PersistentVolumeClaims" in said.err, said
    assert kube.all("jobs") == []
    kube.kubectl("delete", "pvc", project.claim)
    kube.apply(claim(project.claim))
    assert_goes_on(project)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("missing", "the image cannot be pulled: check env: {image: …} in the profile"),
        ("without-python", "has no Python 3.10 or newer for the agent. Name another one"),
        ("without-bash", "it has no bash, by which the agent is started: name another image"),
    ],
)
def test_an_image_that_cannot_serve_starts_no_job(
    kube: KubeCluster, tmp_path: Path, what: str, told: str
) -> None:
    project = on_kube(tmp_path, kube, ONE)
    kube.make("image", name="python", **{"is": what})
    said = project.boxcar("launch", "--no-smoke")
    assert (said.code, said.err.count(told)) == (1, 1), said
    assert kube.all("jobs,secrets") == []
    # A run that was never launched leaves nothing, the pod of a look neither.
    kube.make("image", name="python", **{"is": ""})
    assert "there is nothing to end" in project.boxcar("down").err
    until(lambda: kube.all("pods") == [])


@pytest.mark.faults
def test_a_helper_pod_that_ended_or_is_lost_or_of_another_image_is_made_anew(
    tmp_path: Path,
) -> None:
    with kube_cluster(tmp_path / "k") as kube:
        project = on_kube(tmp_path, kube, ONE)
        project.boxcar("status").ended(0)
        (first,) = kube.all("pods")
        kube.make("evict", pod=first["metadata"]["name"])
        until(lambda: "Evicted" in kube.kubectl("get", "pods", "-o", "yaml"))
        said = project.boxcar("status").ended(0)
        (second,) = kube.all("pods")
        assert "does not answer" not in said.err, said
        kube.make("lose-node", node=second["spec"]["nodeName"])
        said = project.boxcar("status").ended(0)
        (third,) = kube.all("pods")
        assert "does not answer" not in said.err, said
        assert third["spec"]["nodeName"] != second["spec"]["nodeName"]
        profile = project.root / "profiles" / "lab.yaml"
        profile.write_text(profile.read_text().replace("python@", "another@"))
        project.boxcar("status").ended(0)
        (fourth,) = kube.all("pods")
        assert fourth["spec"]["containers"][0]["image"].startswith("another@")
        uids = {pod["metadata"]["uid"] for pod in (first, second, third, fourth)}
        assert len(uids) == 4


@pytest.mark.parametrize(
    ("denied", "told"),
    [
        ("create jobs", "refuse: all: access: create jobs. ask the cluster's admins for a Role"),
        ("create pods/exec", "refuse: all: access: create pods/exec. ask the cluster's admins"),
    ],
)
def test_rights_that_are_missing_are_named_and_nothing_is_submitted(
    kube: KubeCluster, tmp_path: Path, denied: str, told: str
) -> None:
    project = on_kube(tmp_path, kube, ONE)
    kube.make("deny", words=denied)
    said = project.boxcar("launch", "--no-smoke")
    assert (said.code, said.err.count(told)) == (1, 1), said
    assert kube.all("jobs,secrets") == []


@pytest.mark.faults
def test_a_quota_that_is_used_up_while_it_runs_holds_the_queue_until_it_is_raised(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, ONE)
    project.write_config("one", hold_at=1, until="/checkpoints/let-go")
    project.boxcar("launch", "--no-smoke").ended(0)
    pod = kube.running_pod(project.job("a"))
    until((project.tier / "claims" / "one.json").exists)
    (job,) = kube.all("jobs")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    kube.apply(quota | {"spec": {"hard": {"requests.nvidia.com/gpu": "0"}}})
    try:
        kube.make("kill", pod=pod)
        until(lambda: "FailedCreate" in kube.kubectl("get", "events", "-o", "yaml"))
        said = project.boxcar("status")
        assert said.code == 1 and "ask for less, or raise the quota" in said.err, said
        project.boxcar("launch", "--no-smoke")
        assert [one["metadata"]["uid"] for one in kube.all("jobs")] == [job["metadata"]["uid"]]
    finally:
        kube.kubectl("delete", "resourcequota", "few")
    (project.tier.parents[1] / "let-go").touch()
    until(lambda: is_verified(project, "one"), lambda: project.boxcar("status"))
    assert len(kube.pods(project.job("a"))) == 2
    assert project.types("a", "one").count("cell.started") == 2


@pytest.mark.faults
def test_a_node_that_vanishes_costs_no_result_and_no_second_start_beside_the_first(
    tmp_path: Path,
) -> None:
    with kube_cluster(tmp_path / "k") as kube:
        project = on_kube(tmp_path, kube, ONE)
        project.write_config("one", hold_at=1, until="/checkpoints/let-go")
        project.boxcar("launch", "--no-smoke").ended(0)
        pod = kube.running_pod(project.job("a"))
        until((project.tier / "claims" / "one.json").exists)
        node = kube.get("pod", pod)["spec"]["nodeName"]
        kube.make("lose-node", node=node)
        said = project.boxcar("status")
        assert "Traceback" not in said.err + said.out
        assert len(kube.pods(project.job("a"))) == 1  # until the cluster gives the node up
        kube.make("delete-node", node=node)
        until(lambda: kube.running_pod(project.job("a")) != pod)
        (project.tier.parents[1] / "let-go").touch()
        until(lambda: is_verified(project, "one"), lambda: project.boxcar("status"))
        project.boxcar("pull").ended(0)
        project.boxcar("verify").ended(0)
        project.boxcar("down", typed="tiny\n").ended(0)
        assert kube.all("jobs,pods,secrets") == []
