"""A pool on Kubernetes, and a queue that waits for room: who goes on with what, and when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_cluster import KubeCluster
from on_kube import OnKube, on_kube
from waiting import until

NODES = ("node-1", "node-2")
ONE = {"a": ["configs/one.json t"]}


@pytest.fixture(autouse=True)
def nothing_stays(kube: KubeCluster) -> Iterator[None]:
    yield
    let_start(kube)
    kube.kubectl("delete", "job,pod,secret", "-l", "boxcar-run=tiny", "--grace-period=0", "--force")


def let_nothing_start(kube: KubeCluster) -> None:
    for node in NODES:
        kube.make("room", node=node, **{"nvidia.com/gpu": "0"})


def let_start(kube: KubeCluster) -> None:
    for node in NODES:
        kube.make("room", node=node, **{"nvidia.com/gpu": "4"})


def pool(folder: Path, kube: KubeCluster) -> OnKube:
    """Two boxes that share two cells, whose scripts wait in their first step until `let_go`."""
    cells = ["configs/one.json t", "configs/two.json t"]
    project = on_kube(folder, kube, {"a": cells})
    project.write_job(queues={"queues/a.txt": ["p", "q"]})
    for cell in ("one", "two"):
        project.write_config(cell, hold_at=1, until="/checkpoints/let-go")
    return project


def is_verified(project: OnKube, cell: str) -> bool:
    return (project.tier / "cells" / cell / "manifest.json").exists()


def cell_of(project: OnKube, queue: str) -> str:
    """What it works on, as soon as it does."""

    def look() -> str:
        begun = [e["data"]["cell"] for e in project.events(queue) if e["type"] == "cell.started"]
        return str(begun[0]) if begun else ""

    return until(look, lambda: project.boxcar("status"))


@pytest.mark.faults
def test_what_a_member_has_begun_goes_to_the_others_once_it_has_left_and_its_job_is_gone(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = pool(tmp_path, kube)
    project.boxcar("launch", "--no-smoke").ended(0)
    lost = cell_of(project, "a@q")
    let_nothing_start(kube)
    kube.make("evict", pod=kube.running_pod(project.job("a@q")))
    until(lambda: "a@q: pending: its job" in project.boxcar("status").err)
    (project.tier.parents[1] / "let-go").touch()
    said = project.boxcar("launch", "--gone", "q", "--because", "no room").ended(2)
    assert "take q out of queues in job.yaml" in said.err
    project.write_job(queues={"queues/a.txt": ["p"]})
    said = project.boxcar("launch", "--no-smoke").ended(0)
    assert f"1 unfinished cell goes to the boxes of its pool: {lost}" in said.err
    assert [job["metadata"]["name"] for job in kube.all("jobs")] == [project.job("a@p")]
    let_start(kube)
    until(lambda: is_verified(project, lost), lambda: project.boxcar("status"))
    assert "cell.started" in project.types("a@p", lost)


@pytest.mark.faults
def test_a_queue_that_waits_is_called_off_by_a_stop_and_goes_on_with_the_next_launch(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, ONE)
    let_nothing_start(kube)
    project.boxcar("launch", "--no-smoke")
    said = project.boxcar("stop").ended(0)
    assert f"cancelled before it started: {project.job('a')}" in said.err
    assert kube.all("jobs") == []
    let_start(kube)
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: is_verified(project, "one"), lambda: project.boxcar("status"))
