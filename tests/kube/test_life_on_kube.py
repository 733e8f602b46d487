"""A run on Kubernetes, from plan to down, and what goes wrong there. The real kubectl, verbs and
agents; the cluster is the one of the tests (kube_server), whose pods are processes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_cluster import KubeCluster
from on_kube import OnKube, on_kube
from waiting import until


@pytest.fixture(autouse=True)
def nothing_stays(kube: KubeCluster) -> Iterator[None]:
    yield
    kube.make("no-faults")
    kube.kubectl("delete", "job,pod,secret", "-l", "boxcar-run=tiny", "--grace-period=0", "--force")


LINES = {"a": ["configs/one.json t", "configs/two.json t"], "b": ["configs/three.json t"]}


def hold(project: OnKube, cell: str) -> None:
    """The cell stays in its first step until `let_go`."""
    project.write_config(cell, x=3, hold_at=1, until="/checkpoints/let-go")


def let_go(project: OnKube) -> None:
    (project.tier.parents[1] / "let-go").touch()


def is_verified(project: OnKube, *cells: str) -> bool:
    return all((project.tier / "cells" / cell / "manifest.json").exists() for cell in cells)


def somebody_elses(kube: KubeCluster) -> None:
    """A pod named `theirs` with the labels of the run's helper pod, and its claim."""
    helper = next(pod for pod in kube.pods() if pod["metadata"]["name"].endswith("-helper"))
    named = {"name": "theirs", "labels": helper["metadata"]["labels"]}
    spec = {part: helper["spec"][part] for part in ("containers", "volumes")}
    kube.apply({"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec})


def test_a_run_from_audit_to_down_leaves_only_the_claim_and_what_is_somebody_elses(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, LINES)
    said = project.boxcar("audit").ended(0)
    assert "1.37" in said.out
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: is_verified(project, "one", "two", "three"), lambda: project.boxcar("status"))
    somebody_elses(kube)
    # A profile that names another claim would find no Job, and call the run ended.
    lab = project.root / "profiles" / "lab.yaml"
    before = lab.read_text()
    lab.write_text(before.replace(project.claim, "another"))
    for verb, code in (("status", 0), ("launch", 2), ("down", 1)):
        said = project.boxcar(verb, typed="tiny\n").ended(code)
        assert f"was launched with claim: {project.claim}" in said.err, said
    lab.write_text(before)
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)
    project.boxcar("down", typed="tiny\n").ended(0)
    assert [one["metadata"]["name"] for one in kube.all("jobs,pods,secrets")] == ["theirs"]
    assert (project.tier / "cells" / "one" / "manifest.json").exists()
    # The claim is still there for another run, which ends before it begins.
    project.write_job(name="next")
    project.boxcar("audit").ended(0)
    assert "never launched" in project.boxcar("down").err
    assert [one["metadata"]["name"] for one in kube.all("jobs,pods,secrets")] == ["theirs"]


@pytest.mark.faults
def test_two_runs_of_one_name_in_a_namespace_do_not_meet(kube: KubeCluster, tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    theirs = on_kube(tmp_path / "theirs", kube, {"a": ["configs/long.json t"]})
    hold(theirs, "long")
    theirs.boxcar("launch", "--no-smoke").ended(0)
    mine = on_kube(tmp_path / "mine", kube, {"a": ["configs/one.json t"]})
    mine.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: is_verified(mine, "one"), lambda: mine.boxcar("status"))
    mine.boxcar("pull").ended(0)
    mine.boxcar("verify").ended(0)
    mine.boxcar("down", typed="tiny\n").ended(0)
    assert [job["metadata"]["name"] for job in kube.all("jobs")] == [theirs.job("a")]
    let_go(theirs)
    until(lambda: is_verified(theirs, "long"), lambda: theirs.boxcar("status"))


@pytest.mark.faults
def test_an_evicted_agent_goes_on_in_another_pod_from_its_checkpoint(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, {"a": ["configs/long.json t"]})
    hold(project, "long")
    project.boxcar("launch", "--no-smoke").ended(0)
    first = kube.running_pod(project.job("a"))
    until((project.tier / "claims" / "long.json").exists)
    kube.make("evict", pod=first)
    until(lambda: kube.running_pod(project.job("a")) != first)
    let_go(project)
    until(lambda: is_verified(project, "long"), lambda: project.boxcar("status"))
    assert "failed" not in kube.get("job", project.job("a"))["status"]
    assert project.types("a", "long").count("cell.started") == 2
    log = (project.tier / "cells" / "long" / "long.log").read_text()
    assert "attempt 1" in log and "attempt 2" in log, log
    said = project.boxcar("explain", "long").ended(0)
    assert "its last pod ended: Evicted (The node was low on resource: memory.)" in said.out


@pytest.mark.faults
def test_a_preempted_agent_goes_on_and_explain_says_who_took_its_place(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, {"a": ["configs/long.json t"]})
    hold(project, "long")
    project.boxcar("launch", "--no-smoke").ended(0)
    first = kube.running_pod(project.job("a"))
    until((project.tier / "claims" / "long.json").exists)
    kube.make("preempt", pod=first)
    until(lambda: kube.running_pod(project.job("a")) != first)
    let_go(project)
    until(lambda: is_verified(project, "long"), lambda: project.boxcar("status"))
    said = project.boxcar("explain", "long").ended(0)
    assert "its last pod ended: Preempted (Preempted by pod" in said.out


@pytest.mark.faults
def test_a_pod_without_memory_is_started_again(kube: KubeCluster, tmp_path: Path) -> None:
    project = on_kube(tmp_path, kube, {"a": ["configs/long.json t"]})
    hold(project, "long")
    project.boxcar("launch", "--no-smoke").ended(0)
    first = kube.running_pod(project.job("a"))
    kube.make("out-of-memory", pod=first)
    until(lambda: kube.running_pod(project.job("a")) != first)
    let_go(project)
    until(lambda: is_verified(project, "long"), lambda: project.boxcar("status"))
    said = project.boxcar("explain", "long").ended(0)
    assert "its last pod ended: OOMKilled (exit code 137): raise kubernetes: {memory" in said.out


@pytest.mark.faults
def test_a_cell_that_took_its_pods_memory_fails_where_the_pods_may_read_why(
    kube: KubeCluster, tmp_path: Path
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: pods have no account")
    project = on_kube(tmp_path, kube, {"a": ["configs/long.json t", "configs/one.json t"]})
    hold(project, "long")
    kube.make("pods-may-read")
    project.boxcar("launch", "--no-smoke").ended(0)
    kube.make("out-of-memory", pod=kube.running_pod(project.job("a")))
    until(lambda: is_verified(project, "one"), lambda: project.boxcar("status"))
    (failed,) = [e["data"] for e in project.events("a") if e["type"] == "cell.failed"]
    assert failed["cell"] == "long"
    assert failed["reason"].startswith("Kubernetes ended its pod: OOMKilled. ")


@pytest.mark.faults
def test_a_failed_cell_ends_its_job_and_is_not_tried_for_ever(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, {"a": ["configs/bad.json t"]})
    project.write_config("bad", exit_code=42)
    project.boxcar("launch", "--no-smoke")
    until(lambda: "PodFailurePolicy" in kube.kubectl("get", "job", project.job("a"), "-o", "yaml"))
    (pod,) = kube.pods(project.job("a"))
    state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["message"]) == (1, "the agent ended with 1\n")
    assert "failed" in project.boxcar("status").out


@pytest.mark.faults
def test_data_lies_once_on_the_claim_and_stays_while_a_cell_reads_it(
    kube: KubeCluster, tmp_path: Path
) -> None:
    reads = "train.py --data {data}/set --config {cfg} --task {task} --epochs {epochs} --out {out}"
    lines = {"a": ["configs/long.json t"], "b": ["configs/one.json t"]}
    project = on_kube(tmp_path, kube, lines, command=reads, data={"set": "numbers"})
    (project.root / "numbers").mkdir()
    (project.root / "numbers" / "n.txt").write_text("17")
    train = project.root / "train.py"
    names = '("config", "task", "epochs", "out")'
    assert names in train.read_text()
    asked = train.read_text().replace(names, '("data", "config", "task", "epochs", "out")')
    read = 'print("read", (Path(asked.data) / "n.txt").read_text(), flush=True)\n'
    train.write_text(asked.replace('print("trained"', f'{read}print("trained"'))
    hold(project, "long")
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: is_verified(project, "one"), lambda: project.boxcar("status"))
    assert "read 17" in project.boxcar("logs", "one").out
    (digest,) = [path.name for path in (project.tier.parent / ".data").iterdir()]
    said = project.boxcar("data", "--remove", digest[:12])
    assert said.code and "is in use by tiny" in said.err
    let_go(project)
    until(lambda: is_verified(project, "long"), lambda: project.boxcar("status"))


@pytest.mark.faults
def test_an_answer_that_is_lost_after_its_effect_makes_no_second_job(
    kube: KubeCluster, tmp_path: Path
) -> None:
    project = on_kube(tmp_path, kube, {"a": ["configs/one.json t"]})
    kube.fault("POST [^?]*/jobs[?](?!.*dryRun)", 500, after=True)
    project.boxcar("launch", "--no-smoke").ended(0)
    assert len(kube.all("jobs")) == 1
    until(lambda: is_verified(project, "one"))
    # A second launch finds nothing to do, and starts nothing.
    project.boxcar("launch", "--no-smoke").ended(0)
    assert project.types("a", "one").count("cell.started") == 1
