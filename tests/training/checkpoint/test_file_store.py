from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_training import Marked, names_in
from torch import nn

STEP = "checkpoints/step_{:08d}.pth"


def saved(out: Path, *steps: int, **options: Any) -> Marked:
    training = Marked(out, **options)
    training.checkpointer.load_latest()
    for step in steps:
        training.mark(step)
        training.checkpointer.save()
    training.checkpointer.wait()
    return training


def test_a_latest_that_the_mirror_brought_is_the_anchor(tmp_path: Path) -> None:
    saved(tmp_path / "one", 500)
    two = tmp_path / "two"
    two.mkdir()
    (two / "latest.pth").write_bytes((tmp_path / "one/latest.pth").read_bytes())
    assert saved(two, 510, 520).marks() == {520.0}
    assert names_in(two) == [STEP.format(510), STEP.format(520), "latest.pth"]


def test_a_latest_that_a_person_put_there_goes_before_newer_ones(tmp_path: Path) -> None:
    saved(tmp_path, 10, 20, 30, keep=3)
    older = (tmp_path / STEP.format(10)).read_bytes()
    (tmp_path / "latest.pth").unlink()
    (tmp_path / "latest.pth").write_bytes(older)
    assert saved(tmp_path).state.step == 10
    refused = [f"{STEP.format(step)}.refused-1" for step in (20, 30)]
    assert [name for name in names_in(tmp_path) if "refused" in name] == refused


def test_a_damaged_latest_that_was_put_there_is_set_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path, 10)
    (tmp_path / "latest.pth").unlink()
    (tmp_path / "latest.pth").write_bytes(b"")
    assert saved(tmp_path).state.step == 10
    assert "latest.pth: is cut off" in capsys.readouterr().err
    assert "latest.pth.refused-1" in names_in(tmp_path)


def test_without_hard_links_latest_is_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    saved(tmp_path, 10, 20, 30)
    assert not (tmp_path / "latest.pth").samefile(tmp_path / STEP.format(30))
    os.truncate(tmp_path / "latest.pth", 100)
    assert saved(tmp_path).marks() == {30.0}
    assert saved(tmp_path, 40).marks() == {40.0}


def test_what_a_killed_save_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    saved(tmp_path, 10)
    ours = [".latest.pth.1.part", ".best.pth.1.part", "checkpoints/.step_00000020.pth.1.part"]
    theirs = [".cache.1.part", "data/.x.1.part", "best.pth.mine"]
    (tmp_path / "data").mkdir()
    for name in (*ours, *theirs):
        (tmp_path / name).write_bytes(b"half")
    saved(tmp_path)
    assert names_in(tmp_path) == sorted([STEP.format(10), "latest.pth", *theirs])


def test_it_loads_without_boxcar(tmp_path: Path) -> None:
    saved(tmp_path, 10).checkpointer.save_best(0.5)
    for name in ("latest.pth", "best.pth"):
        content = torch.load(tmp_path / name, weights_only=True)
        nn.Linear(1000, 4).load_state_dict(content["model"])
        assert content["step"] == 10
