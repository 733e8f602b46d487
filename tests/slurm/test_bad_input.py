"""Bad moments of a launch on a cluster: two laptops at once, a home without room."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cluster import Cluster
from on_slurm import on_slurm

pytestmark = pytest.mark.slurm
ONE = {"queue_1": ["configs/a.json one"]}
LATER = {"partition": "gpu", "time": "10", "extra": ["--begin=now+1hour"]}


def test_of_two_laptops_that_launch_at_once_one_submits(slurm: Cluster, tmp_path: Path) -> None:
    first = on_slurm(tmp_path, slurm, ONE, slurm=LATER)
    shutil.copytree(first.root, tmp_path / "another" / "project")
    second = replace(first, root=tmp_path / "another" / "project")
    before = set(slurm.jobs())
    started = [
        one.start("launch", "--no-smoke", "--profile", "lab", env=one.env)
        for one in (first, second)
    ]
    ended = [(*process.communicate(), process.returncode) for process in started]
    tasks = set(slurm.jobs()) - before
    assert len(tasks) == 1, (tasks, ended)
    [task] = tasks
    assert 0 in [code for _, _, code in ended], ended
    for _, err, code in ended:
        words = ("waits", "somebody else", "left alone", "at this moment")
        assert code == 0 or any(word in err for word in words), ended
    assert len(list((first.scratch / "boxcar" / first.run / "slurm" / "submits").iterdir())) == 1
    slurm.run("scancel", task)


@pytest.fixture
def full_home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(home)],
        check=False,
        capture_output=True,
    )
    if done.returncode:
        pytest.skip("mount is not allowed here")
    try:
        with (home / "full").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        yield home
    finally:
        subprocess.run(["umount", str(home)], check=True)


def test_a_home_without_room_is_one_sentence_and_nothing_is_submitted(
    slurm: Cluster, tmp_path: Path, full_home: Path
) -> None:
    project = on_slurm(tmp_path, slurm, ONE, slurm=LATER)
    before = slurm.jobs()
    said = project.boxcar("launch", "--no-smoke")
    assert said.code != 0 and str(full_home) in said.err, said
    assert "No space left" in said.err or "full" in said.err, said
    assert "--box" not in said.err, said  # it is the matter with all of them
    assert slurm.jobs() == before
    os.truncate(full_home / "full", 0)
    project.boxcar("launch", "--no-smoke").ended(0)
    slurm.run("scancel", project.task(0))
