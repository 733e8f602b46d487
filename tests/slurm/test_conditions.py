"""What keeps a queue from running, as real Slurm says it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import Cluster
from on_slurm import on_slurm
from waiting import until

pytestmark = pytest.mark.slurm
ONE = {"queue_1": ["configs/a.json one"]}


def test_a_limit_that_is_too_long_is_refused_and_nothing_is_submitted(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = on_slurm(tmp_path, slurm, ONE, slurm={"partition": "gpu", "time": "2:00:00"})
    before = slurm.jobs()
    said = project.boxcar("launch", "--no-smoke").ended(1)
    assert "the job would never start" in said.err
    assert slurm.jobs() == before


def test_a_held_job_and_a_dead_controller_are_said_and_lose_nothing(
    slurm: Cluster, tmp_path: Path
) -> None:
    later = {"partition": "gpu", "time": "10", "extra": ["--begin=now+1hour"]}
    project = on_slurm(tmp_path, slurm, ONE, slurm=later)
    project.boxcar("launch", "--no-smoke").ended(0)
    task = project.task(0)
    slurm.run("scontrol", "hold", task)
    squeue_said = project.tier / "slurm" / "squeue.json"
    squeue_said.unlink(missing_ok=True)
    status = project.boxcar("status").ended(1)
    assert "held" in status.out and "JobHeld" in status.out + status.err

    slurm.stop_controller()
    try:
        squeue_said.unlink(missing_ok=True)
        status = project.boxcar("status").ended(1)
        assert "unreachable" in status.out and "agent dead" not in status.out
        refused = project.boxcar("launch", "--no-smoke").ended(1)
        assert "Slurm does not answer" in refused.err and "boxcar launch" in refused.err
    finally:
        slurm.start_controller()
    until(lambda: task in slurm.jobs(), slurm.jobs)
    assert [one for one in slurm.jobs() if one.endswith("_0") and slurm.jobs()[one] == "PENDING"]
    slurm.run("scancel", task)
