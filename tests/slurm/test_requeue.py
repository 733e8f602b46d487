"""What Slurm takes away it gives back: a time limit, a preemption, a node that is lost.

In the time of a real cluster: the shortest limit of Slurm is a minute.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import Cluster
from on_slurm import OnSlurm, on_slurm
from waiting import until

pytestmark = pytest.mark.slurm


def history(project: OnSlurm, cell: str) -> list[str]:
    """Where each attempt of a cell that is done began."""
    text = (project.out("box-a", cell) / "history.txt").read_text()
    return [line for line in text.splitlines() if line.startswith("start")]


def is_queued_again(project: OnSlurm, starts: int) -> bool:
    return project.said("queue_1").count(f"start {starts} on") == 1


def held(folder: Path, cluster: Cluster, **slurm: object) -> OnSlurm:
    """A run whose only cell has made one step, and waits."""
    project = on_slurm(
        folder, cluster, {"queue_1": ["configs/a.json one"]}, slurm={"partition": "gpu"} | slurm
    )
    project.hold("a", at=1)
    project.boxcar("launch", "--no-smoke").ended(0)
    project.wait_for_step("box-a", "a", 1)
    return project


def goes_on(project: OnSlurm) -> None:
    """Started again by Slurm, the cell resumes from its step, and the queue is done."""
    until(lambda: project.state(0) == "PENDING", project.told)
    word = project.boxcar("status", "--json").document
    assert "launch" not in str(word.get("next")), word
    project.let_go("a")
    project.start_now(0)
    until(lambda: "queue.done" in project.types("queue_1"), project.told)
    assert history(project, "a") == ["start 0", "start 1"]


def test_a_time_limit_queues_the_same_task_again_and_the_cell_resumes(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = held(tmp_path, slurm, time="1")
    until(lambda: "queued again, because its time limit came" in project.said("queue_1"))
    goes_on(project)
    assert is_queued_again(project, 1)


def test_where_a_site_forbids_it_a_new_job_takes_the_place_and_the_cell_resumes(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = held(tmp_path, slurm, time="1")
    first = project.task(0)
    slurm.run("scontrol", "update", f"jobid={first}", "requeue=0")
    until(lambda: "submitted again as" in project.said("queue_1"), project.told)
    project.let_go("a")
    until(lambda: "queue.done" in project.types("queue_1"), project.told)
    assert history(project, "a") == ["start 0", "start 1"]
    assert project.task(0) != first
    assert len(list((project.tier / "slurm" / "submits").iterdir())) == 1


def test_what_is_preempted_slurm_starts_again_and_the_cell_resumes(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = held(tmp_path, slurm, time="10")
    script = tmp_path / "hot.sh"
    script.write_text("#!/bin/sh\nsleep 3\n")
    asked = ("--partition=hot", "--nodes=2", "--exclusive", "--time=5", "--output=/dev/null")
    with slurm.without_a_kill():
        hot = slurm.run("sbatch", "--parsable", *asked, str(script)).strip()
        until(lambda: slurm.jobs().get(hot) == "COMPLETED", slurm.jobs)
    assert "its agent ended with 85" in project.said("queue_1")
    assert "requeue" not in project.said("queue_1")
    goes_on(project)


def test_what_a_person_cancels_is_not_started_again(slurm: Cluster, tmp_path: Path) -> None:
    project = held(tmp_path, slurm, time="10")
    task = project.task(0)
    slurm.run("scancel", task)
    until(lambda: slurm.jobs().get(task) == "CANCELLED", slurm.jobs)
    assert "queued again" not in project.said("queue_1")
    project.let_go("a")
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: "queue.done" in project.types("queue_1"), project.told)
    assert history(project, "a") == ["start 0", "start 1"]
