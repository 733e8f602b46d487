"""A run on a real Slurm, from plan to down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cluster import Cluster
from login_node import login_node
from on_slurm import OnSlurm, on_slurm

QUEUES = {
    "queue_1": ["configs/a.json one", "configs/b.json one"],
    "queue_2": ["configs/c.json one"],
}


def test_two_queues_live_from_plan_to_down(slurm: Cluster, tmp_path: Path) -> None:
    lives(on_slurm(tmp_path, slurm, QUEUES), slurm, tmp_path)


@pytest.mark.slurm
def test_the_same_from_a_laptop_over_ssh(slurm: Cluster, tmp_path: Path) -> None:
    with login_node(tmp_path / "hpc", slurm) as laptop:
        lives(on_slurm(tmp_path, slurm, QUEUES, laptop), slurm, tmp_path)


def jobs_of_somebody_else(slurm: Cluster, folder: Path) -> list[str]:
    """Of the same user: without a comment, of a run of this name elsewhere, and of another run."""
    script = folder / "other.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    said = f"release={'0' * 64} submit={'1' * 16}"
    comments = (
        *("", "boxcar", f"boxcar run=tiny tier={'2' * 12} {said}"),
        f"boxcar run=tiny2 tier={'2' * 12} {said}",
    )
    words = ("--parsable", "--begin=now+1hour", "--output=/dev/null", "--job-name=boxcar-tiny")
    return [
        slurm.run("sbatch", *words, f"--comment={comment}", str(script)).strip()
        for comment in comments
    ]


def lives(project: OnSlurm, slurm: Cluster, folder: Path) -> None:
    project.hold("a", at=1)
    project.hold("c", at=1)
    project.boxcar("plan").ended(0)
    audited = project.boxcar("audit").ended(0)
    version = slurm.run("sinfo", "--version").split()[1]
    assert version.rpartition(".")[0] in audited.out
    launched = project.boxcar("launch", "--no-smoke").ended(0)
    again = project.boxcar("launch", "--no-smoke").ended(0)
    assert again.err.count("already running") == 2, (launched, again)
    assert len(list((project.tier / "slurm" / "submits").iterdir())) == 1
    refused = project.boxcar("down", "--json").ended(1)
    assert "the agent of queue_1 is running" in refused.out
    for name in "ac":
        project.let_go(name)
    for queue in QUEUES:
        project.wait_for_event(queue, "agent.stopped")
    project.boxcar("watch").ended(0)
    status = project.boxcar("status", "--json").ended(0)
    words = {cell["state"] for cell in status.document["cells"]}
    assert words == {"verified"}
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)
    others = jobs_of_somebody_else(slurm, folder)
    down = project.boxcar("down", typed=project.run).ended(0)
    assert {slurm.jobs()[job] for job in others} == {"PENDING"}, down
    slurm.run("scancel", *others)
    teardown = json.loads((project.results / "teardown.json").read_text())
    assert teardown["finished_at"], down
    assert not list((folder / "home").glob("credentials-*"))
