"""How Slurm ended a job is known to the agent that comes next, with accounting and without."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cluster import Cluster, cluster
from on_slurm import OnSlurm, on_slurm
from waiting import until

pytestmark = pytest.mark.slurm
ONE = {"queue_1": ["configs/a.json one"]}


def lose_its_node(project: OnSlurm, slurm: Cluster) -> None:
    """It goes on on the other one: a node that cleans up still says no to the same job."""
    project.hold("a", at=1)
    project.boxcar("launch", "--no-smoke").ended(0)
    project.wait_for_step("box-a", "a", 1)
    node = slurm.run("squeue", "-h", "-t", "running", "-o", "%N").split()[0]
    slurm.run("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")
    until(lambda: project.state(0) == "PENDING", project.told)
    slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=lost")
    project.let_go("a")
    project.start_now(0)
    until(lambda: "queue.done" in project.types("queue_1"), project.told)


@pytest.mark.parametrize(("accounting", "state"), [(True, "NODE_FAIL"), (False, "REQUEUED")])
def test_a_lost_node_is_named_and_its_cell_resumes(
    tmp_path: Path, *, accounting: bool, state: str
) -> None:
    with (
        TemporaryDirectory(prefix="bxs-") as folder,
        cluster(Path(folder) / "c", accounting=accounting) as slurm,
    ):
        project = on_slurm(tmp_path, slurm, ONE)
        lose_its_node(project, slurm)
    events = [event for event in project.events("queue_1") if event["type"] == "agent.started"]
    assert [event["data"]["slurm"].get("before") for event in events] == [None, state]
