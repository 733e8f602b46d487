"""A stranger's project on a cluster, over ssh: its agent is killed, its time limit comes, it is
preempted and loses its node; every cell is verified once.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cluster import Cluster, cluster
from login_node import login_node
from on_slurm import OnSlurm, on_slurm
from waiting import until

pytestmark = pytest.mark.slurm
# As people write them: it knows nothing of Boxcar, nor of signals. Without torch, whose import is
# slower on a busy machine than the shortest time limit of Slurm.
TRAIN = """
import argparse, json, os, time

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--save-dir", required=True)
parser.add_argument("--resume", default="")
parser.add_argument("--go")
args = parser.parse_args()
weight, epoch = 0.0, 0
if args.resume and os.path.exists(args.resume):
    with open(args.resume) as file:
        saved = json.load(file)
    weight, epoch = saved["weight"], saved["epoch"]
    print("resumed at epoch", epoch, flush=True)
while epoch < 3 or not os.path.exists(args.go):
    loss = (weight - 3) ** 2
    weight -= args.lr * 2 * (weight - 3)
    epoch += 1
    print(f"epoch {epoch} loss {loss:.4f}", flush=True)
    path = os.path.join(args.save_dir, "ckpt.json")
    with open(path + ".tmp", "w") as file:
        json.dump({"weight": weight, "epoch": epoch}, file)
    os.replace(path + ".tmp", path)
    time.sleep(0.5)
with open(os.path.join(args.save_dir, "model.json"), "w") as file:
    json.dump({"weight": weight}, file)
"""


def strangers(folder: Path, slurm: Cluster, laptop: dict[str, str]) -> OnSlurm:
    go = folder / "go"
    lines = {f"queue_{n}": [f"- t name=q{n}_{lr} --lr 0.{lr}" for lr in "12"] for n in "12"}
    project = on_slurm(
        folder,
        slurm,
        lines,
        laptop,
        command=f"train.py --save-dir {{out}} --resume {{resume}} --go {go}",
        artifacts=["model.json"],
        resume="ckpt.json",
        slurm={"partition": "gpu", "time": "10", "queues": {"queues/queue_1.txt": {"time": "1"}}},
    )
    (project.root / "train.py").write_text(TRAIN)
    return project


def trains(project: OnSlurm, box: str, cell: str) -> None:
    """It has saved since now."""
    path = project.out(box, cell) / "ckpt.json"
    was = path.stat().st_mtime_ns if path.exists() else 0
    until(lambda: path.exists() and path.stat().st_mtime_ns > was, project.told)


def starts_again(project: OnSlurm, slurm: Cluster) -> None:
    """Both queues, and not in two minutes as Slurm has it."""

    def all_run() -> bool:
        for task, state in slurm.jobs().items():
            if state == "PENDING" and "_" in task:
                slurm.run("scontrol", "update", f"jobid={task}", "starttime=now", check=False)
        return list(slurm.jobs().values()).count("RUNNING") == 2

    until(all_run, project.told)


def test_what_befalls_it_costs_no_cell(tmp_path: Path) -> None:
    with (
        TemporaryDirectory(prefix="bxs-") as folder,
        cluster(Path(folder) / "c") as slurm,
        login_node(tmp_path / "hpc", slurm) as laptop,
    ):
        project = strangers(tmp_path, slurm, laptop)
        project.boxcar("launch", "--no-smoke").ended(0)
        trains(project, "box-a", "q1_1")
        trains(project, "box-b", "q2_1")

        [pid] = [
            e["data"]["pid"] for e in project.events("queue_2") if e["type"] == "agent.started"
        ]
        killed = project.task(1)
        os.kill(pid, signal.SIGKILL)
        until(lambda: slurm.jobs()[killed] == "FAILED", project.told)
        project.boxcar("launch", "--no-smoke").ended(0)
        trains(project, "box-b", "q2_1")

        until(lambda: "because its time limit came" in project.said("queue_1"), project.told)
        starts_again(project, slurm)
        trains(project, "box-a", "q1_1")

        script = tmp_path / "hot.sh"
        script.write_text("#!/bin/sh\nsleep 3\n")
        asked = ("--partition=hot", "--nodes=2", "--exclusive", "--time=5", "--output=/dev/null")
        hot = slurm.run("sbatch", "--parsable", *asked, str(script)).strip()
        until(lambda: slurm.jobs().get(hot) == "COMPLETED", slurm.jobs)
        starts_again(project, slurm)
        trains(project, "box-b", "q2_1")
        trains(project, "box-a", "q1_1")

        # Slurm chooses: both queues may be there, or one.
        asked = ("squeue", "-h", "-t", "running", "-o", "%N", "-j", project.task(0))
        node = until(lambda: slurm.run(*asked).strip(), slurm.jobs)
        slurm.run("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")
        until(lambda: "PENDING" in slurm.states(), slurm.jobs)
        slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=lost")
        starts_again(project, slurm)
        trains(project, "box-a", "q1_1")

        (tmp_path / "go").touch()
        for queue in ("queue_1", "queue_2"):
            project.wait_for_event(queue, "queue.done")
        project.boxcar("pull").ended(0)
        project.boxcar("verify").ended(0)
        done = [e for q in ("queue_1", "queue_2") for e in project.events(q)]
        verified = Counter(e["data"]["cell"] for e in done if e["type"] == "cell.verified")
        assert verified == dict.fromkeys(("q1_1", "q1_2", "q2_1", "q2_2"), 1)
        for cell, least in (("q1_1", 3), ("q2_1", 2)):
            log = next((project.results / "cells" / cell).glob("*.log")).read_text()
            assert log.count("resumed at epoch") >= least, log
            assert log.count("epoch 1 loss") == 1, "it began anew"
        project.boxcar("down", typed=project.run).ended(0)
        assert json.loads((project.results / "teardown.json").read_text())["finished_at"]
