"""`cells: {x: {nodes: 2}}` on Kubernetes: a JobSet, a real torchrun in each of two pods, gloo."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_cluster import KubeCluster
from on_kube import OnKube, on_kube
from waiting import until

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="not installed: torch"
)
# In each step the ranks count each other. In its first life it stands still at step 2.
TRAIN = """
import argparse, json, os, signal, sys, time
from pathlib import Path
import torch, torch.distributed as dist

parser = argparse.ArgumentParser()
for name in ("config", "task", "epochs", "out"):
    parser.add_argument("--" + name, required=True)
asked = parser.parse_args()
config, out, told = json.loads(Path(asked.config).read_text()), Path(asked.out), []
signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
dist.init_process_group("gloo")
rank, latest = dist.get_rank(), out / "latest.json"
print("rank", rank, "on", os.uname().nodename, flush=True)
begin = json.loads(latest.read_text())["step"] if latest.exists() else 0
for step in range(begin, 4):
    seen = torch.tensor([float(bool(told)), 1.0])
    dist.all_reduce(seen)
    if seen[0]:
        sys.exit(85)
    if "fails" in config and config["fails"] in os.uname().nodename:
        raise ValueError("the data of this node is not there")
    if rank == 0:
        new = out / "latest.new"
        new.write_text(json.dumps({"step": step + 1, "began": begin}))
        new.replace(latest)
        with (out / "progress.jsonl").open("a") as progress:
            print(json.dumps({"step": step + 1}), file=progress)
    while begin == 0 and step == 1 and "until" in config and not told:
        time.sleep(0.02)
if rank == 0:
    (out / "model.json").write_text(json.dumps({"began": begin}))
    (out / "metrics.json").write_text(json.dumps({"world": seen[1].item()}))
dist.destroy_process_group()
"""


@pytest.fixture(autouse=True)
def nothing_stays(kube: KubeCluster) -> Iterator[None]:
    yield
    kube.make("no-faults")
    words = ("-l", "boxcar-run=tiny", "--grace-period=0", "--force")
    kube.kubectl("delete", "jobsets,job,pod,secret", *words)


def over_two_pods(
    folder: Path, kube: KubeCluster, *, gpus: int = 1, nodes: int = 2, **config: object
) -> OnKube:
    project = on_kube(
        folder,
        kube,
        {"a": ["configs/x.json t"]},
        gpus=gpus,
        launcher="torchrun",
        cells={"x": {"nodes": nodes, "nproc_per_node": 1}},
    )
    (project.root / "train.py").write_text(TRAIN)
    project.write_config("x", **config)
    return project


def cell_folder(project: OnKube) -> Path:
    return project.tier.parents[1] / "boxcar-boxes/box-a/boxcar/tiny/cells/x"


def is_at_step_2(project: OnKube) -> bool:
    progress = cell_folder(project) / "out" / "progress.jsonl"
    return progress.exists() and len(progress.read_text().splitlines()) >= 2


def log(project: OnKube) -> str:
    """It goes with what is published."""
    paths = (cell_folder(project) / "x.log", project.tier / "cells" / "x" / "x.log")
    return "".join(path.read_text() for path in paths if path.exists())


def is_verified(project: OnKube) -> bool:
    return (project.tier / "cells" / "x" / "manifest.json").exists()


def published(project: OnKube, name: str) -> object:
    return json.loads((project.tier / "cells" / "x" / name).read_text())


def pods(kube: KubeCluster, role: str) -> list[str]:
    """The names of those that run."""
    found = kube.all("pods", "-l", f"boxcar-role={role}")
    return [
        one["metadata"]["name"]
        for one in found
        if one["status"].get("phase") == "Running" and "deletionTimestamp" not in one["metadata"]
    ]


def told(kube: KubeCluster, project: OnKube) -> str:
    return f"{log(project)}\n{kube.kubectl('get', 'jobsets,jobs,pods,events', check=False)}"


@pytest.mark.faults
def test_two_pods_train_one_cell_from_audit_to_down(kube: KubeCluster, tmp_path: Path) -> None:
    project = over_two_pods(tmp_path, kube)
    assert "jobset.x-k8s.io/v1alpha2" in project.boxcar("audit").ended(0).out
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: is_verified(project), lambda: told(kube, project))
    # The end of the agent is the end of the set, and of the pod that follows.
    until(lambda: "Completed" in kube.kubectl("get", "jobsets", "-o", "yaml"))
    until(lambda: kube.all("pods", "-l", "boxcar-role=node") == [])
    assert published(project, "metrics.json") == {"world": 2.0}
    hosts = {line.split()[3] for line in log(project).splitlines() if line.startswith("rank ")}
    assert {host.rsplit("-", 3)[1] for host in hosts} == {"agent", "node"}
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)
    project.boxcar("down", typed="tiny\n").ended(0)
    assert kube.all("jobsets,jobs,pods,secrets,services") == []


@pytest.mark.faults
@pytest.mark.parametrize("role", ["node", "agent"])
def test_a_pod_that_is_killed_is_replaced_alone_and_the_cell_goes_on(
    kube: KubeCluster, tmp_path: Path, role: str
) -> None:
    project = over_two_pods(tmp_path, kube, until="killed")
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: is_at_step_2(project), lambda: told(kube, project))
    beside = "agent" if role == "node" else "node"
    [first], [_] = pods(kube, role), pods(kube, beside)
    kube.make("kill", pod=first)
    until(lambda: is_verified(project), lambda: told(kube, project))
    assert published(project, "model.json") == {"began": 2}
    assert project.types("a", "x").count("cell.started") == 2
    [retried] = [one["data"] for one in project.events("a") if one["type"] == "cell.retried"]
    if role == "node":
        assert "node 2 of 2 is lost" in log(project)
        assert "the pod of another node ended" in retried["reason"]
    # The other pod was there all the time: no second one was made for its Job.
    made = kube.all("events", "--field-selector", "reason=SuccessfulCreate")
    name = f"Created pod: {project.job('a')}-{beside}-0-0-"
    assert len([one for one in made if one["message"].startswith(name)]) == 1


@pytest.mark.faults
def test_why_a_rank_of_the_other_pod_failed_is_why_the_cell_failed(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = over_two_pods(tmp_path, kube, fails="-node-")
    project.boxcar("launch", "--no-smoke")
    until(lambda: "cell.failed" in project.types("a", "x"), lambda: told(kube, project))
    assert "the data of this node is not there" in project.boxcar("explain", "--cell", "x").out
    until(lambda: "FailedJobs" in kube.kubectl("get", "jobsets", "-o", "yaml"))
    until(lambda: pods(kube, "node") == [])


@pytest.mark.faults
def test_a_stop_lets_the_ranks_of_both_pods_save(kube: KubeCluster, tmp_path: Path) -> None:
    project = over_two_pods(tmp_path, kube, until="told")
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: is_at_step_2(project), lambda: told(kube, project))
    project.boxcar("stop").ended(0)
    until(lambda: "Completed" in kube.kubectl("get", "jobsets", "-o", "yaml"))
    assert "cell.preempted" in project.types("a", "x"), project.types("a", "x")
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: is_verified(project), lambda: told(kube, project))


@pytest.mark.faults
def test_a_pod_that_no_node_has_room_for_is_named_while_the_cell_waits(
    kube: KubeCluster, tmp_path: Path
) -> None:
    # Each node of the cluster has four GPUs, and there are two.
    project = over_two_pods(tmp_path, kube, gpus=4, nodes=3)
    project.boxcar("launch", "--no-smoke")
    until(lambda: pods(kube, "agent"), lambda: told(kube, project))
    said = f"{project.job('a')}-node-0-"
    until(lambda: said in project.boxcar("status").err, lambda: project.boxcar("status"))
    [line] = [line for line in project.boxcar("status").err.splitlines() if said in line]
    assert "has not begun (Unschedulable: " in line, line
    project.boxcar("stop").ended(0)


def test_a_cluster_without_jobset_is_refused_with_what_to_install(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = over_two_pods(tmp_path, kube)
    kube.fault("GET /apis/jobset.x-k8s.io/v1alpha2", 404, reason="NotFound", times=1000)
    for verb in (("audit",), ("launch", "--no-smoke")):
        said = project.boxcar(*verb)
        assert said.code, said
        assert "https://jobset.sigs.k8s.io/docs/installation/" in said.out + said.err
    assert kube.all("jobs") == []
