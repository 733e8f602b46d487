"""`cells: {…: {nodes: N}}` over whole projects on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.project.job import read_job
from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.project.resolve import Resolved, resolve
from boxcar.laptop.release import batch_jobs, kube_jobset
from boxcar.laptop.tryout import passes

JOB = """\
name: run-1
command: train.py {cfg} {out}
queues: {queues/q1.txt: a, queues/q2.txt: b}
artifacts: [best.pth]
"""
LAB = "name: lab\nextends: slurm\n"
STORAGE = "storage: {tiers: {scratch: {path: /scratch/me}}}\n"


def resolved(
    root: Path, more: str, lab: str = "", profile: str = "lab", storage: str = STORAGE
) -> Resolved:
    for folder in ("queues", "profiles"):
        (root / folder).mkdir(exist_ok=True)
    for name in ("train.py", "a.json", "big.json"):
        (root / name).touch()
    (root / "profiles/lab.yaml").write_text(LAB + storage + lab)
    (root / "queues/q1.txt").write_text("a.json t\n")
    (root / "queues/q2.txt").write_text("big.json t nproc=4\n")
    (root / "job.yaml").write_text(JOB + more)
    return resolve(root, read_job(root / "job.yaml"), load_profile(profile, root))


def test_the_queue_of_such_a_cell_asks_for_as_many_nodes_and_no_other(tmp_path: Path) -> None:
    found = resolved(tmp_path, "cells: {big: {nodes: 2}}\n")
    assert found.faults == ()
    assert [(cell.name, cell.nodes) for cell in found.plan.cells] == [("a", 1), ("big", 2)]
    assert [passes.ranks(cell) for cell in found.plan.cells] == [1, passes.MOST_RANKS]
    cluster = load_profile("lab", tmp_path).slurm
    jobs = batch_jobs.of_queues(list(found.plan.queues), cluster, cells=found.plan.cells)
    assert [list(job.options.lines()) for job in jobs] == [
        [],
        ["--nodes=2", "--ntasks=2", "--ntasks-per-node=1"],
    ]


@pytest.mark.parametrize(
    ("more", "lab", "profile", "said"),
    [
        (
            "",
            "",
            "local",
            "a cell on several nodes needs Slurm or Kubernetes, and local has neither",
        ),
        ("launcher: accelerate\n", "", "lab", "needs launcher: torchrun"),
        (
            "",
            "slurm: {container: apptainer exec x.sif}\n",
            "lab",
            "does not have. Remove `container:`",
        ),
        ("slurm: {nodes: 1}\n", "", "lab", "big needs 2 nodes, but the job of q2 asks for 1."),
        (
            "slurm: {nodes: 2, queues: {queues/q2.txt: {nodes: 1}}}\n",
            *("", "lab", "the job of q2 asks for 1."),
        ),
    ],
)
def test_where_it_cannot_run_one_sentence_says_why(
    tmp_path: Path, more: str, lab: str, profile: str, said: str
) -> None:
    [fault] = resolved(tmp_path, f"cells: {{big: {{nodes: 2}}}}\n{more}", lab, profile).faults
    assert "cells.big.nodes: " in fault.text and said in fault.text


POD = "kubernetes: {claim: tier}\nmeter: {is_billed: no}\n"


def on_kubernetes(root: Path, storage: str, more: str = "") -> Resolved:
    (root / "profiles").mkdir()
    (root / "profiles/pods.yaml").write_text(f"name: pods\nextends: kubernetes\n{POD}{storage}")
    return resolved(root, f"cells: {{big: {{nodes: 2}}}}\n{more}", profile="pods")


def test_on_kubernetes_the_data_lie_on_the_claim_in_a_folder_of_each_queue(tmp_path: Path) -> None:
    found = on_kubernetes(tmp_path, "", "slurm: {nodes: 1}\n")
    assert found.faults == ()
    assert [box.data_dir for box in found.plan.boxes] == [
        *("/checkpoints/boxcar-boxes/a", "/checkpoints/boxcar-boxes/b")
    ]
    pods = [kube_jobset.pods_of(found.plan, queue) for queue in found.plan.queues]
    assert pods == [1, 2]


def test_on_kubernetes_the_pods_own_disk_is_no_place_for_it(tmp_path: Path) -> None:
    [fault] = on_kubernetes(tmp_path, "storage: {data: pod_fs}\n").faults
    assert "pod_fs (storage.data) is a separate disk on each node. Name one" in fault.text


def test_a_disk_of_each_node_is_no_place_for_it(tmp_path: Path) -> None:
    lab = "storage: {data: node_tmp, tiers: {node_tmp: {path: /tmp/me}, scratch: {path: /s}}}\n"
    [fault] = resolved(tmp_path, "cells: {big: {nodes: 2}}\n", storage=lab).faults
    assert "node_tmp (storage.data) is a separate disk on each node" in fault.text
