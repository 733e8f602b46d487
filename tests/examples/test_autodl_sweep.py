"""The folder to copy: it plans as it lies there, and its script resumes to the same end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from boxcar.laptop.project.project import open_project

SWEEP = Path(__file__).parents[2] / "examples" / "autodl_sweep"


def train(out: Path, *words: str) -> str:
    out.mkdir(exist_ok=True)
    command = [sys.executable, "train.py", "--config", "configs/spirals.json", "--out", str(out)]
    done = subprocess.run(
        [*command, "--limit-batches", "3", *words],
        cwd=SWEEP, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("profile", ["local", "autodl", "gpushare"])
def test_a_copy_of_it_plans_on_each_of_its_platforms(tmp_path: Path, profile: str) -> None:
    shutil.copytree(SWEEP, tmp_path / "my-sweep")
    plan = open_project(tmp_path / "my-sweep" / "job.yaml", profile).plan
    assert [cell.name for cell in plan.cells] == [
        f"spirals_lr{rate}_seed{seed}" for seed in (1, 2) for rate in ("1e-3", "3e-3", "1e-2")
    ]


def test_its_script_takes_overrides_and_goes_on_from_its_last_epoch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    whole = train(tmp_path / "a", "--epochs", "4", "lr=0.01")
    train(tmp_path / "b", "--epochs", "2", "lr=0.01")
    latest = str(tmp_path / "b" / "latest.pth")
    rest = train(tmp_path / "b", "--epochs", "4", "--resume", latest, "lr=0.01")
    assert whole.splitlines()[2:] == rest.splitlines()
    metrics = [(tmp_path / run / "metrics.json").read_text() for run in "ab"]
    assert metrics[0] == metrics[1] and json.loads(metrics[0])["accuracy"] > 0
    assert train(tmp_path / "c", "--epochs", "4") != whole, "lr=0.01 was taken"
