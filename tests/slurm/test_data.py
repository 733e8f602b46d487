"""A job's data on a real Slurm: once on the tier, read by two queues, named by down."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import Cluster
from on_slurm import on_slurm

pytestmark = pytest.mark.slurm

QUEUES = {"queue_1": ["configs/a.json one"], "queue_2": ["configs/c.json one"]}
SAY = """import os, pathlib
print("data:", pathlib.Path(os.environ["BOXCAR_DATA"], "set", "one.txt").read_text())
"""


def test_data_is_sent_once_to_the_tier_and_every_queue_reads_it(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = on_slurm(tmp_path, slurm, QUEUES)
    folder = project.root / "sets" / "one"
    folder.mkdir(parents=True)
    (folder / "one.txt").write_text("the same for all")
    train = project.root / "train.py"
    train.write_text(SAY + train.read_text())
    project.write_job(data={"set": "sets/one"})
    project.boxcar("launch", "--no-smoke").ended(0)
    for queue, cell in (("queue_1", "a"), ("queue_2", "c")):
        project.wait_for_event(queue, "cell.verified", cell)
        assert (
            "data: the same for all" in (project.tier / "cells" / cell / f"{cell}.log").read_text()
        )
    folders = project.boxcar("data", "--json").ended(0).document["folders"]
    assert [(one["place"], one["files"], one["problems"]) for one in folders] == [("tier", 1, [])]
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)
    asked = project.boxcar("down", typed="no")
    assert "the job's data on the tier: set." in asked.err
