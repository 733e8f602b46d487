"""kill -9 at random times; then the same commands end with every cell verified exactly once."""

from __future__ import annotations

import json

import pytest
from living import Process, kill, living
from proof import (
    assert_nothing_runs,
    assert_nothing_torn,
    assert_published_once,
    assert_pulled,
)
from storm import assert_went_on, stormy
from tiny_project import TinyProject
from torch_train import TORCH_JOB, TORCH_TRAIN


def test_every_cell_is_verified_once_whatever_is_killed(project):
    storm = stormy(project, seed=20260301)
    run = storm.project
    storm.run_queues(kills=8)
    assert_published_once(run, storm.cells)
    assert_nothing_torn(run)
    assert_went_on(storm)
    storm.type_until_done("pull", kills=1).ended(0)
    assert_pulled(run, storm.cells)
    said = storm.type_until_done("verify", "--json", kills=1).ended(0)
    storm.type_until_done("down", "--approve", said.document["digest"], kills=1).ended(0)
    assert not list((run.root / ".boxcar/local").rglob("cells"))
    assert_pulled(run, storm.cells)
    assert_nothing_runs(run)
    print(storm)
    assert {"script", "wrapper", "agent", "launch"} <= set(storm.hits), str(storm)


@pytest.mark.faults
def test_a_killed_rank_and_a_killed_torchrun_cost_no_result(project):
    pytest.importorskip("torch")
    run = project({"q1": ["configs/one.json t 5"], "q2": ["configs/two.json t 5"]}, **TORCH_JOB)
    run.write_job(cells={"two": {"nproc_per_node": 2}}, **TORCH_JOB)
    (run.root / "train.py").write_text(TORCH_TRAIN)
    for cell in ("one", "two"):
        run.hold(cell, at=2)
    run.boxcar("launch").ended(0)
    for box, cell in (("box-a", "one"), ("box-b", "two")):
        run.wait_for(f"the second step of {cell}", (run.out(box, cell) / "latest.pt").exists)
    first = {process.pid for process in _processes(run, "-u train.py")}
    assert len(first) == 3
    kill(_processes(run, "torch.distributed.run", "one.json")[0])
    kill(_processes(run, "-u train.py", "two.json")[0])
    for queue, cell in (("q1", "one"), ("q2", "two")):
        run.wait_for_event(queue, "cell.retried", cell)
    left = [process for process in _processes(run, "-u train.py") if process.pid in first]
    assert not left, "ranks of a dead attempt go on beside the next one"
    kill(_processes(run, ".pyz agent", "--queue q2")[0])
    for cell in ("one", "two"):
        run.let_go(cell)
    run.boxcar("launch").ended(0)
    run.boxcar("watch").ended(0)
    assert_published_once(run, ["one", "two"])
    for cell, ranks in (("one", 1), ("two", 2)):
        metrics = json.loads((run.tier / "cells" / cell / "metrics.json").read_text())
        assert metrics == {"steps": 5, "sum": 3.0 * 5 * ranks}
    assert_nothing_runs(run)


def _processes(run: TinyProject, *words: str) -> list[Process]:
    return [p for p in living(run.root) if all(word in p.words for word in words)]
