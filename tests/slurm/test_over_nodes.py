"""`cells: {x: {nodes: 2}}` on two real nodes: srun, a torchrun on each, one rendezvous."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from cluster import Cluster
from on_slurm import OnSlurm, on_slurm
from waiting import until

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="not installed: torch"),
]
# Rank 0 writes; a rank that is to fail waits until the other is there, so that it is the first.
TRAIN = """
import argparse, json, os, signal, sys, time
from pathlib import Path

parser = argparse.ArgumentParser()
for name in ("config", "task", "epochs", "out"):
    parser.add_argument("--" + name, required=True)
asked = parser.parse_args()
config, out = json.loads(Path(asked.config).read_text()), Path(asked.out)
rank, world, told = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), []
signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
about = {"node": os.environ["SLURMD_NODENAME"], "nodes": os.environ["BOXCAR_NODES"]}
(out / f"rank{rank}.json").write_text(json.dumps(about))
while len(list(out.glob("rank*.json"))) < world:
    time.sleep(0.05)
if "fails" in config:
    if about["node"] == config["fails"]:
        raise ValueError("the data of this node is not there")
    time.sleep(600)
latest = out / "latest.json"
starts = json.loads(latest.read_text())["starts"] + 1 if latest.exists() else 1
if rank == 0:
    (out / "progress.jsonl").open("a").write(json.dumps({"step": starts}) + "\\n")
while starts == 1 and "until" in config and not told:
    time.sleep(0.05)
if rank == 0:
    new = out / "latest.new"
    new.write_text(json.dumps({"starts": starts}))
    new.replace(latest)
if told:
    sys.exit(85)
if rank == 0:
    (out / "model.json").write_text(json.dumps({"starts": starts}))
    (out / "metrics.json").write_text(json.dumps({"world": world}))
"""
# Of the two ranks one sleeps, and the other waits for it in a collective for ever.
HANGS = """
import os, time
import torch
import torch.distributed as dist
from boxcar.training import DistributedConfig, progress, ranks

me = ranks.join(DistributedConfig(timeout_s=30))
for step in range(1, 4):
    dist.all_reduce(torch.ones(1))
    progress.report(step=step)
if os.environ["SLURMD_NODENAME"] == "n2":
    time.sleep(3600)
dist.all_reduce(torch.ones(1))
"""
# Ends well only with two ranks that have met.
MEETS = """
import json, sys
from pathlib import Path
import torch, torch.distributed as dist

dist.init_process_group("gloo")
seen = torch.ones(1)
dist.all_reduce(seen)
assert seen.item() == 2
out = Path(sys.argv[sys.argv.index("--out") + 1])
if dist.get_rank() == 0:
    for name in ("model.json", "metrics.json"):
        (out / name).write_text(json.dumps({"world": seen.item()}))
dist.destroy_process_group()
"""


def over_two_nodes(
    folder: Path, slurm: Cluster, name: str, script: str = TRAIN, **config: object
) -> OnSlurm:
    project = on_slurm(
        folder,
        slurm,
        {"queue_1": [f"configs/{name}.json one"]},
        launcher="torchrun",
        cells={name: {"nodes": 2}},
    )
    (project.root / "train.py").write_text(script)
    project.write_config(name, **config)
    project.boxcar("launch", "--no-smoke").ended(0)
    return project


def test_a_rank_of_each_node_takes_part_and_a_time_limit_resumes_both(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = over_two_nodes(tmp_path, slurm, "x", until="told")
    out = project.out("box-a", "x")
    until((out / "progress.jsonl").exists, project.told)
    task = project.task(0)
    # As Slurm does before a limit; that it does is another test's.
    slurm.run("scancel", "--batch", "--signal=USR1", task)
    until(lambda: project.state(0) == "PENDING", project.told)
    project.start_now(0)
    until(lambda: "queue.done" in project.types("queue_1"), project.told)
    found = {json.loads((out / f"rank{n}.json").read_text())["node"] for n in range(2)}
    assert found == {"n1", "n2"}
    assert json.loads((out / "metrics.json").read_text()) == {"world": 2}
    assert json.loads((out / "model.json").read_text()) == {"starts": 2}
    project.boxcar("pull").ended(0)
    project.boxcar("verify").ended(0)


def test_what_the_first_failing_node_says_is_why_the_cell_failed(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = over_two_nodes(tmp_path, slurm, "x", fails="n2")
    until(lambda: "cell.failed" in project.types("queue_1"), project.told)
    [failed] = [one for one in project.events("queue_1") if one["type"] == "cell.failed"]
    assert "the data of this node is not there" in json.dumps(failed["data"])
    until(lambda: not slurm.states() & {"RUNNING", "COMPLETING"}, slurm.jobs)
    assert not slurm.run("squeue", "-h", "-s", "-o", "%i").strip()


def test_a_smoke_of_such_a_cell_has_two_processes_here(slurm: Cluster, tmp_path: Path) -> None:
    queues = {"queue_1": ["configs/x.json one"]}
    job = {"launcher": "torchrun", "cells": {"x": {"nodes": 2}}, "smoke": "--epochs 1"}
    project = on_slurm(tmp_path, slurm, queues, **job)
    (project.root / "train.py").write_text(MEETS)
    [outcome] = project.boxcar("smoke", "--json").ended(0).document["cells"]
    assert outcome["state"] == "passed", outcome


def test_a_hang_is_seen_on_both_nodes_and_named_by_rank_node_and_line(
    slurm: Cluster, tmp_path: Path
) -> None:
    project = over_two_nodes(tmp_path, slurm, "x", script=HANGS)

    def reasons() -> list[str]:
        return [str(one["data"].get("reason")) for one in project.events("queue_1")]

    def step() -> object:
        [queue] = project.boxcar("status", "--json").document["queues"]
        return queue["step"]

    until(lambda: step() == 3, project.told)
    until(lambda: any("one-rank-diverged" in reason for reason in reasons()), project.told)
    reason = next(one for one in reasons() if "one-rank-diverged" in one)
    assert "time.sleep(3600)" in reason and "is on n2" in reason and "all_reduce" in reason
    report = (project.out("box-a", "x") / "hang" / "report.txt").read_text()
    assert " on n1: waits: collective" in report and " on n2: waits: compute" in report
    assert "RESUME_SAME" in project.boxcar("explain", "--cell", "x").out
    slurm.run("scancel", project.task(0))
