"""A run on a real Slurm, from plan to down."""

from __future__ import annotations

import json
from pathlib import Path

from cluster import Cluster
from on_slurm import on_slurm

QUEUES = {
    "queue_1": ["configs/a.json one", "configs/b.json one"],
    "queue_2": ["configs/c.json one"],
}


def test_two_queues_live_from_plan_to_down(slurm: Cluster, tmp_path: Path) -> None:
    project = on_slurm(tmp_path, slurm, QUEUES)
    project.hold("a", at=1)
    project.hold("c", at=1)
    project.boxcar("plan").ended(0)
    audited = project.boxcar("audit").ended(0)
    assert "22.05" in audited.out
    launched = project.boxcar("launch", "--no-smoke").ended(0)
    again = project.boxcar("launch", "--no-smoke").ended(0)
    assert len({task.split("_")[0] for task in slurm.jobs() if _is_ours(slurm, task)}) == 1, (
        launched,
        again,
    )
    refused = project.boxcar("down", "--json").ended(1)
    assert "at work" in refused.out
    for name in "ac":
        project.let_go(name)
    for queue in QUEUES:
        project.wait_for_event(queue, "agent.stopped")
    project.boxcar("watch").ended(0)
    status = project.boxcar("status", "--json").ended(0)
    words = {cell["state"] for cell in status.document["cells"]}
    assert words == {"verified"}
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)
    down = project.boxcar("down", typed=project.run).ended(0)
    teardown = json.loads((project.results / "teardown.json").read_text())
    assert teardown["finished_at"], down
    assert not list((tmp_path / "home").glob("credentials-*"))


def _is_ours(slurm: Cluster, task: str) -> bool:
    named = slurm.run("squeue", "-h", "-t", "all", "-j", task.split("_", maxsplit=1)[0], "-o", "%j")
    return "boxcar-tiny" in named
