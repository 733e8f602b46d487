"""A newer release is pushed while a cell runs, and its agent dies: the next agent is of another
release, and fails nobody for what Boxcar did itself.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from living import kill, living
from proof import assert_published_once


@pytest.mark.faults
@pytest.mark.parametrize("dies_too", [True, False], ids=["with its cell", "alone"])
def test_a_cell_goes_on_or_counts_as_it_ended(project, *, dies_too):
    """`-` is the documented placeholder of a line without a task."""
    command = "train.py --config {cfg} --task none --epochs {epochs} --out {out}"
    made = project({"queue_1": ["configs/mid.json - 4"]}, command=command)
    run = replace(made, is_quick=False)
    run.hold("mid", at=2)
    run.boxcar("launch", "--no-smoke").ended(0)
    run.wait_for_step("box-a", "mid", 2)
    with (run.root / "train.py").open("a") as script:
        script.write("# changed\n")
    run.write_config("lr", x=5)
    run.append("queue_1", "configs/lr.json - 4")
    run.boxcar("push", "--mixed").ended(0)
    for process in living(run.local):
        if dies_too or " agent " in process.words:
            kill(process)
    run.boxcar("launch", "--no-smoke").ended(0)
    run.let_go("mid")
    run.boxcar("watch").ended(0)
    assert "cell.failed" not in run.types("queue_1")
    assert_published_once(run, ["mid", "lr"])
    history = (run.out("box-a", "mid") / "history.txt").read_text().splitlines()
    assert [line for line in history if line.startswith("start")] == (
        ["start 0", "start 2"] if dies_too else ["start 0"]
    )
    assert [line for line in history if line.startswith("step")] == [
        f"step {n}" for n in range(1, 5)
    ]
