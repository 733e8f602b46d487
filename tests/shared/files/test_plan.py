from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, plan
from boxcar.shared.files.plan import Artifact, Box, Cell, Plan

PLAN = Plan(
    run="digits-ablation",
    profile="local",
    durable_dir="/fs/$(touch x)",
    boxes=(Box("box-a", "/data a", "/root/.boxcar"), Box("box-b", "/data", "/root/.boxcar")),
    queues={"queue_1": "box-a", "queue_2": "box-b"},
    cells=(Cell("größe", "configs/größe.yaml", "t", 20, "queue_1", 0, nproc=None),),
    command=("train.py", "--config", "{cfg}"),
    launcher="torchrun",
    nproc=None,
    cell_nproc={"größe": 2},
    epochs=None,
    artifacts=(Artifact("best.pth", ("model",)), Artifact("metrics.json")),
    resume=None,
    scratch=("epoch_*.pth",),
    env={"WANDB_MODE": "offline"},
    secrets=("WANDB_API_KEY",),
    linger_s=0,
    agent_python="/usr/bin/python3",
    training_python="/opt/my conda/bin/python",
)


def test_a_plan_reads_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(codec.to_document(PLAN))
    assert plan.read_plan(path) == PLAN


def test_a_box_is_found_by_its_name() -> None:
    assert PLAN.box("box-b") == PLAN.boxes[1]
    with pytest.raises(KeyError, match="box-c"):
        PLAN.box("box-c")


def test_a_missing_plan_is_not_a_damaged_one(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(FileNotFoundError):
        plan.read_plan(path)
    path.write_bytes(codec.to_document(PLAN)[:-30])
    with pytest.raises(DamagedError, match=f"^{path}: not a JSON document"):
        plan.read_plan(path)
