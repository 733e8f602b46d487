"""A claim that one node has at a time: the queue's pod and the helper pod never both need it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_cluster import KubeCluster
from kube_objects import ended
from on_kube import OnKube, on_kube
from waiting import until

GPU = "nvidia.com/gpu"


@pytest.fixture(autouse=True)
def helper_and_queue_go_to_different_nodes(kube: KubeCluster) -> Iterator[None]:
    kube.make("room", node="node-1", **{GPU: "0"})
    yield
    for node in ("node-1", "node-2"):
        kube.make("room", node=node, **{GPU: "4"})
    kube.kubectl("delete", "job,pod,secret", "-l", "boxcar-run=tiny", "--grace-period=0", "--force")


def helpers(kube: KubeCluster) -> list[str]:
    """The nodes of the helper pods there are."""
    chosen = kube.all("pods", "-l", "boxcar-role=helper")
    return [pod["spec"].get("nodeName", "") for pod in chosen]


def is_verified(project: OnKube, cell: str) -> bool:
    return (project.tier / "cells" / cell / "manifest.json").exists()


@pytest.mark.faults
def test_one_queue_has_it_alone_from_launch_to_down(kube: KubeCluster, tmp_path: Path) -> None:
    lines = ["configs/one.json t", "configs/long.json t"]
    project = on_kube(tmp_path, kube, {"a": lines}, mode="ReadWriteOnce")
    project.write_config("long", x=3, hold_at=1, until="/checkpoints/let-go")
    project.boxcar("audit").ended(0)
    assert helpers(kube) == ["node-1"]

    kube.make("room", node="node-2", **{GPU: "0"})
    project.boxcar("launch", "--no-smoke")
    said = project.boxcar("status").err
    assert "is ReadWriteOnce: its files can be read again once the pod of the queue runs" in said
    said = project.boxcar("pull").ended(1)
    assert "nothing to pull: " in said.err and "is ReadWriteOnce: its files can be" in said.err
    assert helpers(kube) == []
    kube.make("room", node="node-2", **{GPU: "4"})

    until(lambda: is_verified(project, "one"), lambda: project.boxcar("status"))
    project.boxcar("pull").ended(0)
    assert helpers(kube) == []
    (project.tier.parents[1] / "let-go").touch()
    until(lambda: is_verified(project, "long"), lambda: project.boxcar("status"))
    assert ended(kube, project.job("a")) == "Complete CompletionsReached"
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)
    project.boxcar("down", typed="tiny\n").ended(0)
    assert kube.all("jobs,pods,secrets") == []


@pytest.mark.faults
def test_a_helper_pod_that_came_in_the_same_moment_makes_room(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, {"a": ["configs/one.json t"]}, mode="ReadWriteOnce")
    project.boxcar("audit").ended(0)
    (helper,) = kube.all("pods", "-l", "boxcar-role=helper")
    kube.make("room", node="node-2", **{GPU: "0"})
    project.boxcar("launch", "--no-smoke")
    named = {part: helper["metadata"][part] for part in ("name", "labels")}
    spec = {part: helper["spec"][part] for part in ("containers", "volumes")}
    kube.apply({"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec})
    until(lambda: helpers(kube) == ["node-1"])
    kube.make("room", node="node-2", **{GPU: "4"})
    until(lambda: kube.pods(project.job("a"))[0]["spec"].get("nodeName") == "node-2")
    project.boxcar("status")
    until(lambda: is_verified(project, "one"), lambda: project.boxcar("status"))
