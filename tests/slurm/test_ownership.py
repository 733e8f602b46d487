"""A queue has one agent, also where file locks say nothing: the owner is its Slurm job."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import Cluster
from login_node import login_node
from on_slurm import OnSlurm, on_slurm
from waiting import until

pytestmark = pytest.mark.slurm
SOURCE = Path(__file__).with_name("flock.c")


def shell_without_flock(folder: Path, mood: str) -> dict[str, str]:
    """What makes flock of files on the tier of this folder fail, or succeed for everybody."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("not installed: cc")
    library = folder / "flock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    about = {"FLOCK_FOLDER": str(folder / "scratch"), "FLOCK_MOOD": mood}
    return about | {"LD_PRELOAD": str(library)}


def python_in(folder: Path, shell: dict[str, str]) -> str:
    path = folder / "python"
    lines = [f"export {name}='{value}'" for name, value in shell.items()]
    path.write_text("\n".join(["#!/bin/sh", *lines, f'exec {sys.executable} "$@"\n']))
    path.chmod(0o755)
    return str(path)


def submit_once_more(project: OnSlurm, slurm: Cluster) -> str:
    """As a person does by hand, whom nothing keeps from it."""
    [release] = (project.tier / "releases").iterdir()
    script = str(release / "run_slurm.sh")
    words = ("--parsable", "--array=0", f"--chdir={project.tier}", "--output=/dev/null")
    job = slurm.run("sbatch", *words, script, str(release)).strip()
    return f"{job}_0"


@pytest.mark.parametrize("mood", ["fails", "lies"])
def test_a_second_job_leaves_the_queue_alone_and_takes_it_over_once_the_first_is_gone(
    slurm: Cluster, tmp_path: Path, mood: str
) -> None:
    shell = shell_without_flock(tmp_path, mood)
    python = python_in(tmp_path, shell)
    with login_node(tmp_path / "hpc", slurm, **shell) as laptop:
        queues = {"queue_1": ["configs/a.json one"]}
        project = on_slurm(tmp_path, slurm, queues, laptop, python=python)
        project.hold("a", at=1)
        project.boxcar("launch", "--no-smoke").ended(0)
        first = project.task(0)
        project.wait_for_step("box-a", "a", 1)
        second = submit_once_more(project, slurm)
        until(lambda: f"task {second}: its agent ended" in project.said("queue_1"), project.told)
        # Where flock fails its stand-in knows the other agent: these nodes are one machine.
        by_whom = f", in Slurm's job {first} on" if mood == "lies" else ""
        assert f"its agent is already running{by_whom}" in project.said("queue_1")
        assert project.types("queue_1").count("agent.started") == 1
        slurm.run("scancel", first)
        until(lambda: slurm.jobs().get(first) == "CANCELLED", slurm.jobs)
        project.let_go("a")
        project.boxcar("launch", "--no-smoke").ended(0)
        until(lambda: "queue.done" in project.types("queue_1"), project.told)
        until(lambda: not slurm.states() & {"RUNNING", "COMPLETING"}, slurm.jobs)
        project.boxcar("pull").ended(0)
        project.boxcar("verify").ended(0)
        project.boxcar("down", typed=project.run).ended(0)
