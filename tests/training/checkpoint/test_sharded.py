"""The Checkpointer of folders, on FSDP2 models."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from fsdp_on_cpu import fully_shard, needs_fsdp_on_cpu
from ranks_at_work import run_ranks
from tiny_training import Marked
from torch import nn
from waiting import LIMIT_S

from boxcar.shared.disk import digest
from boxcar.shared.errors import BoxcarError, DamagedError, InputError, NoRoomError
from boxcar.training.checkpoint import dcp_folder
from boxcar.training.checkpoint.checkpointer import Checkpointer
from boxcar.training.checkpoint.training_state import TrainingState
from boxcar.training.ranks import ranks

pytestmark = needs_fsdp_on_cpu

FEATURES = 8


class Loader:
    """The same global batch on every number of ranks."""

    def state_dict(self) -> dict[str, int]:
        return {"global_batch": 12}

    def load_state_dict(self, saved: dict[str, int]) -> None:
        pass


class Training:
    """Each rank takes its share of the same batches, so the curve is the same on any world."""

    def __init__(self, out: Path, **options: Any) -> None:
        self.me = ranks.join()
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, 1))
        if self.me.world > 1:
            shard(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)
        self.state = TrainingState(model=self.model, optimizer=self.optimizer, loader=Loader())
        self.checkpointer = Checkpointer(out, self.state, is_sharded=True, **options)
        self.resumed = self.checkpointer.load_latest()

    def train(self, steps: int) -> list[float]:
        return [self.step() for _ in range(steps)]

    def step(self) -> float:
        draw = torch.Generator().manual_seed(self.state.step)
        inputs = torch.randn(12, FEATURES, generator=draw)[self.me.rank :: self.me.world]
        loss = (self.model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.state.step += 1
        return ranks.all_reduce_metrics({"loss": loss.item()})["loss"]


def shard(model: nn.Module) -> None:
    fully_shard(model[0])  # type: ignore[index]
    fully_shard(model)


def train_and_save(out: Path) -> list[float]:
    training = Training(out)
    training.train(4)
    training.checkpointer.save_async()
    losses = training.train(4)
    training.checkpointer.wait()
    ranks.leave()
    return losses


def go_on(out: Path) -> tuple[bool, list[float]]:
    training = Training(out)
    losses = training.train(4)
    ranks.leave()
    return training.resumed, losses


def test_it_goes_on_the_same_curve_on_another_number_of_ranks(tmp_path: Path) -> None:
    expected = run_ranks(2, train_and_save, tmp_path)[0]
    assert [path.name for path in (tmp_path / "checkpoints").glob("step*")] == ["step_00000004"]
    for world in (1, 3):
        for resumed, losses in run_ranks(world, go_on, tmp_path):
            assert resumed
            assert losses == pytest.approx(expected, rel=1e-5)


def train_from_the_start(out: Path, is_saved: bool) -> tuple[list[float], float]:
    training = Training(out)
    training.optimizer.param_groups[0]["lr"] = 0.02
    if is_saved:
        training.checkpointer.save_async()
        training.checkpointer.wait()
    write_s = training.checkpointer.pace.write_s
    losses = training.train(4)
    ranks.leave()
    return losses, write_s


def test_a_save_before_the_first_step_changes_no_later_step(tmp_path: Path) -> None:
    expected, _ = run_ranks(2, train_from_the_start, tmp_path / "never", False)[0]
    first, second = run_ranks(2, train_from_the_start, tmp_path / "saved", True)
    assert first[0] == second[0] == expected
    # What the saving thread took, the same on all ranks, which must agree when the next is due.
    assert first[1] == second[1] > 0
    for world in (1, 2):
        for resumed, losses in run_ranks(world, go_on, tmp_path / "saved"):
            assert resumed
            assert losses == pytest.approx(expected, rel=1e-5)


def resume_and_count(out: Path) -> list[str]:
    read, of_file = [], digest.crc32_of_file

    def counted(path: Path, *, from_disk: bool) -> int:
        read.append(path.name)
        return of_file(path, from_disk=from_disk)

    digest.crc32_of_file = counted
    Training(out)
    ranks.leave()
    return read


def test_a_resume_checks_every_file_once(tmp_path: Path) -> None:
    run_ranks(2, train_and_save, tmp_path)
    read = [name for of_rank in run_ranks(2, resume_and_count, tmp_path) for name in of_rank]
    assert sorted(read) == [".metadata", "__0_0.distcp", "__1_0.distcp"]


def live_through_all(out: Path) -> dict[str, Any]:
    """What needs no process of its own, in one world of two."""
    found: dict[str, Any] = {}
    training = Training(out, keep=2)
    try:
        Checkpointer(out / "one file", training.state)
    except InputError as error:
        found["as one file"] = str(error)
    for metric in (0.5, 0.9, 0.7):
        training.train(1)
        training.checkpointer.save_best(metric)
        training.checkpointer.save_async()
    training.checkpointer.save()
    training.checkpointer.wait()
    found["kept"] = sorted(path.name for path in (out / "checkpoints").glob("step*"))
    found["draws"] = torch.rand(2).tolist()
    training = Training(out)
    found["again"] = torch.rand(2).tolist() == found["draws"]
    found["best"] = training.state.best
    found["no room"] = said_by(training)
    damage(out / "checkpoints" / "step_00000003-1", training.me.rank)
    training = Training(out)
    found["fell back to"] = training.state.step
    found["left"] = sorted(path.name for path in (out / "checkpoints").glob("*step*"))
    ranks.leave()
    return found


def said_by(training: Training) -> str:
    write = dcp_folder._write

    def no_room(*_: Any) -> None:
        raise NoRoomError("full")

    dcp_folder._write = no_room
    try:
        training.checkpointer.save()
    except BoxcarError as error:
        return type(error).__name__
    finally:
        dcp_folder._write = write
    return ""


def damage(folder: Path, rank: int) -> None:
    """One bit, which DCP would load."""
    if rank == 0:
        path = folder / "__0_0.distcp"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    ranks.agree_any(False)


def test_retention_best_room_and_damage_as_for_single_files(tmp_path: Path) -> None:
    one, two = run_ranks(2, live_through_all, tmp_path)
    for found in (one, two):
        assert "give Checkpointer is_sharded=True" in found["as one file"]
        assert found["kept"] == ["step_00000003", "step_00000003-1"]
        assert found["again"]
        assert found["best"]["metric"] == 0.9
        assert found["no room"] == "NoRoomError"
        assert found["fell back to"] == 3
        assert found["left"] == ["step_00000003", "step_00000003-1.refused-1"]
    best = torch.load(tmp_path / "best.pth", weights_only=True)
    assert (best["step"], best["model"]["0.weight"].shape) == (2, (16, FEATURES))


def saved_at(training: Marked, *steps: int) -> Marked:
    for step in steps:
        training.mark(step)
        training.checkpointer.save()
    training.checkpointer.wait()
    return training


def begun(out: Path) -> Marked:
    training = Marked(out, keep=1, is_sharded=True)
    training.checkpointer.load_latest()
    return training


def checkpoints(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "checkpoints").glob("*step*"))


def test_a_save_does_not_wait_until_a_newer_one_was_read_back_and_the_old_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = saved_at(begun(tmp_path), 10)
    may_read, check = threading.Event(), dcp_folder.check_on_disk

    def slow(folder: Path) -> None:
        assert may_read.wait(LIMIT_S)
        check(folder)

    monkeypatch.setattr(dcp_folder, "check_on_disk", slow)
    training.mark(20)
    training.checkpointer.save()
    assert checkpoints(tmp_path) == ["step_00000010", "step_00000020"]
    may_read.set()
    training.checkpointer.wait()
    assert checkpoints(tmp_path) == ["step_00000020"]


def meet_a_disk_that_lies(out: Path, is_async: bool) -> tuple[str, list[str], int]:
    training = Training(out, keep=1)
    training.checkpointer.save()
    check = dcp_folder.check_on_disk

    def damaged(folder: Path) -> None:
        path = folder / "__1_0.distcp"
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        check(folder)

    dcp_folder.check_on_disk = damaged
    training.train(1)
    save = training.checkpointer.save_async if is_async else training.checkpointer.save
    save()
    with pytest.raises(DamagedError) as raised:
        training.checkpointer.wait()
    dcp_folder.check_on_disk = check
    left = checkpoints(out)
    training.train(1)
    training.checkpointer.save()
    training.checkpointer.wait()
    found = Training(out).state.step
    ranks.leave()
    return str(raised.value), left, found


@pytest.mark.parametrize("is_async", [False, True])
def test_what_the_disk_gives_back_otherwise_is_set_aside_and_raised_on_all_ranks(
    tmp_path: Path, is_async: bool
) -> None:
    one, two = run_ranks(2, meet_a_disk_that_lies, tmp_path, is_async)
    assert one == two
    said, left, found = one
    assert "__1_0.distcp: its CRC-32 is not" in said
    assert left == ["step_00000000", "step_00000001.refused-1"] and found == 2


def on_a_disk_of_its_own(out: Path) -> str:
    me = ranks.join()
    try:
        Training(out / str(me.rank))
    except BoxcarError as error:
        return str(error)
    return ""


def test_ranks_that_see_different_disks_are_told_so_and_nothing_is_set_aside(
    tmp_path: Path,
) -> None:
    run_ranks(1, train_and_save, tmp_path / "0")
    (tmp_path / "1").mkdir()
    for said in run_ranks(2, on_a_disk_of_its_own, tmp_path):
        assert "must be one folder for all ranks" in said
    assert not list(tmp_path.rglob("*refused*"))
