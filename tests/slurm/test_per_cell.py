"""`slurm: {per: cell}`: each task of the array runs one cell of the queue."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import Cluster
from on_slurm import on_slurm
from waiting import until

pytestmark = pytest.mark.slurm


def test_each_task_takes_the_next_free_cell_and_the_last_says_that_the_queue_is_done(
    slurm: Cluster, tmp_path: Path
) -> None:
    lines = [f"configs/{name}.json one" for name in "abc"]
    asked = {"partition": "gpu", "time": "10", "per": "cell"}
    project = on_slurm(tmp_path, slurm, {"queue_1": lines}, slurm=asked)
    project.boxcar("launch", "--no-smoke").ended(0)
    until(lambda: "queue.done" in project.types("queue_1"), project.told)
    until(lambda: not slurm.states() & {"PENDING", "RUNNING", "COMPLETING"}, slurm.jobs)
    events = project.events("queue_1")
    assert [one["type"] for one in events].count("agent.started") == 3
    assert [one["data"]["cell"] for one in events if one["type"] == "cell.started"] == list("abc")
    ended = [one["data"]["by"] for one in events if one["type"] == "agent.stopped"]
    assert ended == ["turn", "turn", "done"]
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)
