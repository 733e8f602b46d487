"""A run whose Jobs begin when Kueue lets them. Kueue's own part is a stand-in: the test does to the
Job what Kueue's published contract says (label, suspend, Workload), and the server does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube_cluster import KubeCluster
from on_kube import OnKube, on_kube
from waiting import until

API = {"apiVersion": "kueue.x-k8s.io/v1beta1"}
QUEUE = {**API, "kind": "LocalQueue", "metadata": {"name": "team-a"}, "spec": {}}
WHY = "insufficient unused quota for nvidia.com/gpu in flavor default, 1 more needed"


@pytest.fixture(autouse=True)
def kueue(kube: KubeCluster) -> Iterator[None]:
    kube.make("install", group="kueue.x-k8s.io")
    kube.apply(QUEUE)
    yield
    kube.kubectl("delete", "queue/team-a")
    kube.kubectl("delete", "job,pod,secret", "-l", "boxcar-run=tiny", "--grace-period=0", "--force")


def suspend(kube: KubeCluster, job: str, *, is_on: bool) -> None:
    """As Kueue admits a Job, and takes its room away again for one that goes first."""
    kube.kubectl("patch", "job", job, "-p", json.dumps({"spec": {"suspend": is_on}}))


def workload(job: dict[str, Any]) -> dict[str, Any]:
    """What Kueue makes of it, while there is no room."""
    meta = job["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"]}
    labels = {"kueue.x-k8s.io/job-uid": meta["uid"]}
    named = {"name": f"job-{meta['name']}", "labels": labels, "ownerReferences": [owner]}
    waits = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": WHY}
    return {**API, "kind": "Workload", "metadata": named, "status": {"conditions": [waits]}}


def has_begun(project: OnKube, times: int) -> bool:
    return project.types("a", "long").count("cell.started") == times


@pytest.mark.faults
def test_a_job_waits_for_kueue_and_one_that_kueue_takes_the_room_of_goes_on_later(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, {"a": ["configs/long.json t"]})
    project.write_config("long", x=3, hold_at=1, until="/checkpoints/let-go")
    profile = project.root / "profiles" / "lab.yaml"
    profile.write_text(profile.read_text().replace("claim:", "kueue: team-a, claim:"))
    job = project.job("a")

    said = project.boxcar("launch", "--no-smoke").ended(0)
    assert f"its job {job} waits in Kueue's queue team-a" in said.err
    kube.apply(workload(kube.get("job", job)))
    assert f"waits in Kueue's queue team-a: {WHY}" in project.boxcar("status").err
    assert kube.pods(job) == []
    project.boxcar("launch", "--no-smoke").ended(0)
    assert len(kube.all("jobs")) == 1

    suspend(kube, job, is_on=False)
    until(lambda: has_begun(project, 1), lambda: project.boxcar("status"))
    suspend(kube, job, is_on=True)
    until(lambda: kube.pods(job) == [])
    assert "waits in Kueue's queue team-a" in project.boxcar("status").err
    (project.tier.parents[1] / "let-go").touch()
    suspend(kube, job, is_on=False)
    manifest = project.tier / "cells" / "long" / "manifest.json"
    until(manifest.exists, lambda: project.boxcar("status"))
    assert has_begun(project, 2)
    assert "cell.retried" not in project.types("a", "long")
    assert "failed" not in kube.get("job", job)["status"]


@pytest.mark.faults
def test_a_job_that_a_person_has_suspended_is_told_of_with_what_to_do(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, {"a": ["configs/long.json t"]})
    project.write_config("long", x=3, hold_at=1, until="/checkpoints/let-go")
    project.boxcar("launch", "--no-smoke").ended(0)
    suspend(kube, project.job("a"), is_on=True)
    until(lambda: kube.pods(project.job("a")) == [])
    said = project.boxcar("status").err
    assert "(Suspended): somebody has suspended it" in said
