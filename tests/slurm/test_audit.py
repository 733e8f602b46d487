"""`audit` tries what nodes are like by one short job, and says when it could not."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import Cluster
from on_slurm import on_slurm

pytestmark = pytest.mark.slurm


def test_two_real_nodes_are_tried_and_the_tier_is_one_place(slurm: Cluster, tmp_path: Path) -> None:
    asked = {"partition": "gpu", "time": "10", "gres": "gpu:1"}
    project = on_slurm(tmp_path, slurm, {"queue_1": ["configs/a.json one"]}, slurm=asked)
    said = project.boxcar("audit").ended(0).out
    assert "n1, n2: Python 3" in said
    assert "one of 2 nodes won" in said and "flock works" in said and "1 visible" in said
    assert not list(project.scratch.glob(".boxcar-try-*"))
