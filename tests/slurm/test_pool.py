"""A pool on real Slurm: one job each, and what a job leaves behind the others go on with."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster
from on_slurm import OnSlurm, on_slurm
from proof import assert_nothing_torn, assert_published_once
from waiting import looks, until

pytestmark = pytest.mark.slurm
CELLS = ["c0", "c1", "c2", "c3"]
A, B = "all@a", "all@b"


ASKED = {"partition": "gpu", "time": "10"}


def pool(folder: Path, cluster: Cluster, **slurm: Any) -> OnSlurm:
    lines = [f"configs/{name}.json one 3" for name in CELLS]
    project = on_slurm(folder, cluster, {"all": lines})
    project.write_job(queues={"queues/all.txt": ["a", "b"]}, slurm=ASKED | slurm)
    return project


def owner(project: OnSlurm, cell: str) -> str:
    path = project.tier / "claims" / f"{cell}.json"
    return str(json.loads(path.read_bytes())["queue"]) if path.exists() else ""


def held_by_both(project: OnSlurm) -> dict[str, str]:
    """By member the cell that it holds, once each has made a step."""
    for cell in ("c0", "c1"):
        project.hold(cell, at=1)
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: owner(project, "c0") and owner(project, "c1"), project.told)
    found = {owner(project, cell): cell for cell in ("c0", "c1")}
    assert set(found) == {A, B}
    for queue, cell in found.items():
        project.wait_for_step(queue.removeprefix("all@"), cell, 1)
    return found


def assert_all_are_home_once(project: OnSlurm) -> None:
    done = [one["data"]["cell"] for one in project.all_events() if one["type"] == "cell.verified"]
    assert sorted(done) == CELLS
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)
    project.boxcar("down", typed=project.run).ended(0)


def test_the_members_share_one_file_in_a_job_each(slurm: Cluster, tmp_path: Path) -> None:
    project = pool(tmp_path, slurm)
    held_by_both(project)
    tasks = [task for task, state in slurm.jobs().items() if state == "RUNNING"]
    assert sorted(task.split("_")[1] for task in tasks) == ["0", "1"]
    assert len({task.split("_")[0] for task in tasks}) == 1, "one array"
    for cell in ("c0", "c1"):
        project.let_go(cell)
    until(lambda: not slurm.states() & {"RUNNING", "COMPLETING"}, project.told)
    assert_all_are_home_once(project)


def test_what_a_cancelled_job_had_begun_the_other_goes_on_with_unasked(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = pool(tmp_path, slurm)
    cells = held_by_both(project)
    task = project.task(0)
    slurm.run("scancel", task)
    until(lambda: slurm.jobs().get(task) == "CANCELLED", slurm.jobs)
    project.let_go(cells[B])
    until(lambda: owner(project, cells[A]) == B, project.told)
    project.let_go(cells[A])
    until(lambda: not slurm.states() & {"RUNNING", "COMPLETING"}, project.told)
    [told] = project.warnings(B, "given_back")
    assert "the Slurm job of all@a has ended (CANCELLED)" in told["text"]
    assert "agent.stopped" in project.types(A)
    assert_all_are_home_once(project)


def test_while_a_member_waits_to_be_started_again_its_cell_is_its_own(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = pool(tmp_path, slurm)
    cells = held_by_both(project)
    slurm.run("scontrol", "requeue", project.task(0))
    until(lambda: project.state(0) == "PENDING", project.told)
    project.let_go(cells[B])
    until(lambda: "queue.done" in project.types(B), project.told)
    assert owner(project, cells[A]) == A
    refused = project.boxcar("launch", "--gone", "a", "--because", "so").ended(2)
    assert "Once its job has ended, the others of its pool go on with its cells" in refused.err
    project.let_go(cells[A])
    project.start_now(0)
    until(lambda: "queue.done" in project.types(A), project.told)
    assert_all_are_home_once(project)


def test_a_killed_agent_gives_back_only_once_its_job_is_over(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = pool(tmp_path, slurm)
    cells = held_by_both(project)
    task = project.task(0)
    slurm.run("scancel", "--signal=KILL", "--full", task)
    until(lambda: slurm.jobs()[task] in ("FAILED", "CANCELLED"), slurm.jobs)
    project.let_go(cells[B])
    until(lambda: owner(project, cells[A]) == B, project.told)
    project.let_go(cells[A])
    until(lambda: not slurm.states() & {"RUNNING", "COMPLETING"}, project.told)
    assert_all_are_home_once(project)


def test_a_member_that_left_the_job_is_drained_or_cancelled_before_it_starts(
    slurm: Cluster, tmp_path: Path
) -> None:
    later = {"extra": ["--begin=now+1hour"]}
    project = pool(tmp_path, slurm, **later)
    project.boxcar("launch", "--no-smoke").ended(0)
    task = project.task(1)
    project.write_job(queues={"queues/all.txt": ["a"]}, slurm=ASKED | later)
    said = project.boxcar("launch", "--no-smoke").ended(0)
    assert f"all@b is no longer in the job: what waited in Slurm was cancelled ({task})" in said.err
    until(lambda: slurm.jobs().get(task) != "PENDING", slurm.jobs)
    assert project.state(0) == "PENDING", "the job of the other is left alone"
    project.start_now(0)
    until(lambda: "queue.done" in project.types(A), project.told)
    until(lambda: not slurm.states() & {"RUNNING", "COMPLETING"}, project.told)
    assert_all_are_home_once(project)


def test_cell_by_cell_each_member_takes_the_next_free_one(slurm: Cluster, tmp_path: Path) -> None:
    project = pool(tmp_path, slurm, per="cell")
    cells = held_by_both(project)
    for cell in cells.values():
        project.let_go(cell)
    active = {"PENDING", "RUNNING", "COMPLETING"}
    until(lambda: not slurm.states() & active, project.told)
    assert_all_are_home_once(project)


def test_whatever_happens_to_the_jobs_each_cell_is_verified_once(
    slurm: Cluster, tmp_path: Path
) -> None:
    cells = [f"s{at:02d}" for at in range(12)]
    lines = [f"configs/{cell}.json one 4" for cell in cells]
    project = on_slurm(tmp_path, slurm, {"all": lines})
    project.write_job(queues={"queues/all.txt": ["a", "b", "c"]}, slurm=ASKED)
    for cell in cells:
        project.write_config(cell, seconds=0.3)
    dice = random.Random(20261129)
    hits: Counter[str] = Counter()

    def hit() -> None:
        running = [task for task, state in slurm.jobs().items() if state == "RUNNING"]
        if running:
            task, how = dice.choice(running), dice.choice(sorted(_HITS))
            hits[how] += 1
            slurm.run(*_HITS[how], task, check=False)

    def verified() -> list[str]:
        return [e["data"]["cell"] for e in project.all_events() if e["type"] == "cell.verified"]

    for _ in looks(project.told):
        if len(verified()) == len(cells):
            break
        for task, state in slurm.jobs().items():
            if state == "PENDING":
                slurm.run("scontrol", "update", f"jobid={task}", "starttime=now", check=False)
        if not slurm.states() & {"PENDING", "RUNNING", "COMPLETING"}:
            project.boxcar("launch", "--no-smoke").ended(0)
        if sum(hits.values()) <= len(verified()) and dice.random() < 0.2:
            hit()
    assert sorted(verified()) == cells, hits
    assert hits
    until(lambda: not slurm.states() & {"PENDING", "RUNNING", "COMPLETING"}, project.told)
    assert_published_once(project, cells)
    assert_nothing_torn(project)
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)
    project.boxcar("down", typed=project.run).ended(0)


_HITS = {
    "cancelled": ("scancel",),
    "killed": ("scancel", "--signal=KILL", "--full"),
    "requeued": ("scontrol", "requeue"),
}
