"""What an agent left unproven a job of one core loads where it lies, and no login node."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from cluster import Cluster
from on_slurm import on_slurm
from waiting import until

pytestmark = pytest.mark.slurm
# The loading waits as long as there is a file.
PYTHON = """#!/bin/sh
case "$*" in *load_check*) while [ -e {hold} ]; do sleep 0.1; done ;; esac
exec {python} "$@"
"""


def test_a_job_of_one_core_loads_what_a_killed_agent_had_published(
    slurm: Cluster, tmp_path: Path
) -> None:
    hold, python = tmp_path / "hold", tmp_path / "python"
    hold.touch()
    python.write_text(PYTHON.format(hold=hold, python=sys.executable))
    python.chmod(0o755)
    queues = {"queue_1": ["configs/a.json one"]}
    asked = {"partition": "gpu", "time": "10", "cpus_per_task": 2, "gres": "gpu:1"}
    project = on_slurm(tmp_path, slurm, queues, python=str(python), slurm=asked)
    project.boxcar("launch", "--no-smoke").ended(0)
    project.wait_for_event("queue_1", "cell.synced")
    first = project.task(0)
    [started] = [e for e in project.events("queue_1") if e["type"] == "agent.started"]
    os.kill(started["data"]["pid"], signal.SIGKILL)
    until(lambda: "its agent ended with 137" in project.said("queue_1"), project.told)
    until(lambda: slurm.jobs()[first] == "FAILED", slurm.jobs)
    (project.tier / "slurm" / "squeue.json").unlink(missing_ok=True)  # as after 30 s
    project.boxcar("launch", "--no-smoke").ended(0)
    about = slurm.run("scontrol", "show", "job", project.task(0))
    # From 23.x on it shows its command line, too, which says --gres=none.
    asked = [word for word in about.split() if word.startswith(("ReqTRES=", "TresPer"))]
    assert "NumCPUs=1 " in about and "gres/" not in " ".join(asked), about
    hold.unlink()
    until(lambda: "queue.done" in project.types("queue_1"), project.told)
    types = project.types("queue_1")
    assert types.count("cell.verified") == types.count("cell.started") == 1
