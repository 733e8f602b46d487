"""Two boxes are ended, one by a drain and one by a stop, and a launch goes on with both."""

from __future__ import annotations

from pathlib import Path

import pytest
from hosts import Hosts
from proof import assert_published_once
from rented import hurry, rent

CELLS = ["a", "b", "c", "d"]


@pytest.mark.faults
def test_drain_and_stop_end_one_box_each_and_a_launch_goes_on(hosts: Hosts, tmp_path: Path) -> None:
    lines = {
        "q1": ["configs/a.json one", "configs/b.json one"],
        "q2": ["configs/c.json one 4"],
        "q3": ["configs/d.json one"],
    }
    run = rent(hosts, tmp_path / "project", lines)
    for cell, at in (("a", 1), ("b", 1), ("c", 2), ("d", 1)):
        run.hold(cell, at=at)
    run.launch().ended(0)
    drained = run.boxcar("drain", "--box", "box-a").ended(0)
    assert "q1 on box-a: finishes a, then ends" in drained.err and "q2" not in drained.err
    run.wait_for_step("box-b", "c", 2)
    run.boxcar("stop", "--box", "box-b").ended(0)
    run.let_go("a")
    for queue in ("q1", "q2"):
        run.wait_for_event(queue, "agent.stopped")
    seen = run.boxcar("status", "--json").ended(0).document
    assert [queue["condition"] for queue in seen["queues"]] == ["drained", "stopped", "running"]
    assert (run.types("q1", "b"), run.types("q2", "c")[-1]) == ([], "cell.preempted")

    again = run.launch("--json").ended(0).document
    assert again["started"] == ["q1", "q2"]
    run.wait_for_event("q2", "queue.done")
    hosts.cut("box-a")
    hurry(hosts)
    half = run.boxcar("drain").ended(1)
    assert "q1 could not be asked to drain (q3 was asked); run the same command" in half.err
    run.let_go("d")
    run.wait_for_event("q3", "agent.stopped")
    hosts.heal("box-a")
    run.let_go("b")
    run.watch()
    history = (run.out("box-b", "c") / "history.txt").read_text().split("\n")
    assert history[:5] == ["start 0", "step 1", "step 2", "start 2", "step 3"]
    assert_published_once(run, CELLS)
