"""Checkpoints as torch writes them, found by a job's pattern, mirrored, lost and put back."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp

from boxcar.shared.artifacts.resume_match import chosen
from onbox.checkpoint import live_checkpoint
from onbox.checkpoint.live_checkpoint import Mirror
from onbox.checkpoint.restored_checkpoint import restore


def weights(step: int) -> dict[str, torch.Tensor]:
    return {"weight": torch.full((64,), float(step)), "step": torch.tensor(step)}


def save_step(out: Path, step: int) -> Path:
    path = out / f"checkpoints/step_{step}.pt"
    path.parent.mkdir(exist_ok=True)
    torch.save(weights(step), path)
    return path


def save_trainers(out: Path, step: int) -> Path:
    """As the Trainer of transformers does, its state last."""
    folder = out / f"checkpoint-{step}"
    folder.mkdir()
    torch.save(weights(step), folder / "pytorch_model.bin")
    torch.save({"state": {}}, folder / "optimizer.pt")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return folder


def save_sharded(out: Path, step: int) -> Path:
    folder = out / f"dcp/step={step}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(weights(step), checkpoint_id=folder)
    return folder


def load_step(path: Path) -> int:
    return int(torch.load(path, weights_only=True)["step"])


def load_trainers(path: Path) -> int:
    return load_step(path / "pytorch_model.bin")


def load_sharded(path: Path) -> int:
    state = weights(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.load(state, checkpoint_id=path)
    return int(state["step"])


def cut_file(path: Path) -> None:
    """As a kill leaves a file that was being written."""
    path.write_bytes(path.read_bytes()[:-200])


def cut_trainers(path: Path) -> None:
    (path / "trainer_state.json").unlink()


def cut_sharded(path: Path) -> None:
    (path / ".metadata").unlink()


@dataclass(frozen=True)
class Habit:
    resume: str
    save: Callable[[Path, int], Path]
    load: Callable[[Path], int]
    cut: Callable[[Path], None]


HABITS = [
    Habit("checkpoints/step_*.pt", save_step, load_step, cut_file),
    Habit("checkpoint-*/", save_trainers, load_trainers, cut_trainers),
    Habit("dcp/step=*/", save_sharded, load_sharded, cut_sharded),
]


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.resume)
def test_a_checkpoint_that_a_kill_cut_off_is_left_for_the_one_before(
    tmp_path: Path, habit: Habit
) -> None:
    for step in (500, 1000, 1500):
        newest = habit.save(tmp_path, step)
        assert chosen(tmp_path, habit.resume) == newest
    habit.cut(newest)
    found = chosen(tmp_path, habit.resume)
    assert found and habit.load(found) == 1000


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.resume)
def test_what_was_lost_with_a_box_loads_again_after_it_came_back(
    tmp_path: Path, habit: Habit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_checkpoint, "SHORTEST_S", 0.0)
    monkeypatch.setattr(live_checkpoint, "STILL_S", 0.0)
    out, tier = tmp_path / "out", tmp_path / "tier/resume"
    out.mkdir()
    saved = [habit.save(out, step) for step in (500, 1000, 1500)]
    habit.cut(saved[-1])
    Mirror("c", 1, out, habit.resume, tier).tick(lambda size_bytes: None)
    shutil.rmtree(out)
    out.mkdir()
    assert restore(tier, out, habit.resume)
    found = chosen(out, habit.resume)
    assert found == saved[1]
    assert habit.load(found) == 1000
