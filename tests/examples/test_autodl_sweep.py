"""The folder to copy: it plans as it lies there, and its script resumes to the same end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked_script import ForkedScript

from boxcar.laptop.project.project import open_project

SWEEP = Path(__file__).parents[2] / "examples" / "autodl_sweep"


def train(out: Path, *words: str) -> str:
    out.mkdir(exist_ok=True)
    command = [sys.executable, "train.py", "--config", "configs/spirals.json", "--out", str(out)]
    words = ("--limit-batches", "1", *words)
    with ForkedScript(
        [*command, *words], cwd=SWEEP, env=os.environ, stdout=subprocess.PIPE, text=True
    ) as process:
        said = process.communicate()[0]
    assert process.returncode == 0
    return said


@pytest.mark.parametrize("profile", ["local", "autodl", "gpushare"])
def test_a_copy_of_it_plans_on_each_of_its_platforms(tmp_path: Path, profile: str) -> None:
    shutil.copytree(SWEEP, tmp_path / "my-sweep")
    plan = open_project(tmp_path / "my-sweep" / "job.yaml", profile).plan
    assert [cell.name for cell in plan.cells] == [
        f"spirals_lr{rate}_seed{seed}" for seed in (1, 2) for rate in ("1e-3", "3e-3", "1e-2")
    ]


@pytest.mark.faults
def test_its_script_takes_overrides_and_goes_on_from_its_last_epoch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    whole = train(tmp_path / "a", "--epochs", "2", "lr=0.01")
    other = train(tmp_path / "b", "--epochs", "1", "width=8")
    assert other.splitlines()[0] != whole.splitlines()[0], "width=8 was taken"
    train(tmp_path / "c", "--epochs", "1", "lr=0.01")
    latest = str(tmp_path / "c" / "latest.pth")
    rest = train(tmp_path / "c", "--epochs", "2", "--resume", latest, "lr=0.01")
    assert rest.splitlines() == whole.splitlines()[1:]
    metrics = [(tmp_path / run / "metrics.json").read_text() for run in "ac"]
    assert metrics[0] == metrics[1] and json.loads(metrics[0])["accuracy"] > 0
