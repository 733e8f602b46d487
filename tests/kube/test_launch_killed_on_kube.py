"""`launch` killed at any instant, and what the next `launch` and `down` find then."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_cluster import KubeCluster
from on_kube import on_kube
from waiting import until

pytestmark = pytest.mark.faults
SEED = int(os.environ.get("BOXCAR_SEED", random.randrange(10**9)))
KILLS = 5


@pytest.fixture(autouse=True)
def nothing_stays(kube: KubeCluster) -> Iterator[None]:
    yield
    kube.kubectl("delete", "job,pod,secret", "-l", "boxcar-run=tiny", "--grace-period=0", "--force")


def test_a_launch_that_is_killed_at_any_instant_submits_nothing_twice_and_leaves_nothing(
    kube: KubeCluster, tmp_path: Path
) -> None:
    dice = random.Random(SEED)
    lines = {"a": ["configs/a1.json t"], "b": ["configs/b1.json t"]}
    project = on_kube(tmp_path, kube, lines)
    for cell in ("a1", "b1"):
        project.write_config(cell, hold_at=1, until="/checkpoints/let-go")
    longest_s, seen = 1.0, dict[str, str]()
    for _ in range(KILLS):
        with project.start("launch", "--no-smoke") as launch:
            try:
                launch.communicate(timeout=dice.uniform(0.2, longest_s))
            except subprocess.TimeoutExpired:
                launch.kill()
                launch.communicate()
        longest_s *= 2
        for job in kube.all("jobs"):
            name, uid = job["metadata"]["name"], job["metadata"]["uid"]
            assert seen.setdefault(name, uid) == uid, f"seed {SEED}: {name} was made anew"
    project.boxcar("launch", "--no-smoke").ended(0)
    assert {job["metadata"]["name"] for job in kube.all("jobs")} == {
        project.job("a"),
        project.job("b"),
    }
    assert seen.items() <= {
        (job["metadata"]["name"], job["metadata"]["uid"]) for job in kube.all("jobs")
    }
    (project.tier.parents[1] / "let-go").touch()
    for queue in ("a", "b"):
        until(lambda queue=queue: project.types(queue)[-1:] == ["agent.stopped"])
        assert project.types(queue).count("cell.started") == 1, SEED
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)
    project.boxcar("down", typed="tiny\n").ended(0)
    assert kube.all("jobs,pods,secrets") == []


@pytest.mark.parametrize("number", range(4))
def test_what_a_killed_first_launch_left_is_found_by_down(
    kube: KubeCluster, tmp_path: Path, number: int
) -> None:
    project = on_kube(tmp_path, kube, {"a": ["configs/a1.json t"]})
    with project.start("launch", "--no-smoke") as launch:
        made = ("pods", "secrets", "jobs", "jobs")[number]
        until(lambda: kube.all(made) or launch.poll() is not None)
        launch.kill()
        launch.communicate()
    said = project.boxcar("down")
    if "nothing to end" not in said.err:
        project.boxcar("stop")
        until(lambda: not kube.pods(project.job("a")) or "Complete" in str(kube.all("jobs")))
        project.boxcar("pull")
        project.boxcar("verify")
        said = project.boxcar("down", typed="tiny\n")
    if said.code and "nothing to end" not in said.err:  # it was stopped before its end
        give_up = ("--abandon", "a1", "--because", "it was a try")
        said = project.boxcar("down", *give_up, typed="tiny\n")
    assert kube.all("jobs,pods,secrets") == [], said
