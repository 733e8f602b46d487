"""The Checkpointer of one file each; sharded ones are in test_sharded.py, but for what holds for
both."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoint_storm import before_each_step, storm
from ranks_at_work import RanksFailed, run_ranks
from tiny_training import Marked, Tiny, names_in
from waiting import LIMIT_S

from boxcar.shared.errors import BoxcarError, DamagedError, InputError, NoRoomError, TemporaryError
from boxcar.training.checkpoint import checkpoint_file
from boxcar.training.checkpoint.checkpointer import Checkpointer
from boxcar.training.checkpoint.file_store import FileStore
from boxcar.training.checkpoint.training_state import TrainingState
from boxcar.training.ranks import ranks
from boxcar.training.ranks.side_group import SideGroup

STEP = "checkpoints/step_{:08d}.pth"


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def started(out: Path, **options: Any) -> Marked:
    """One that looked for a checkpoint, and found one where there is any."""
    training = Marked(out, **options)
    training.checkpointer.load_latest()
    return training


def save_at(training: Marked, *steps: int) -> Marked:
    for step in steps:
        training.mark(step)
        training.checkpointer.save()
    training.checkpointer.wait()
    return training


def flip_a_bit(path: Path) -> None:
    """In the middle: in a tensor's bytes, where torch does not look."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


# --- saving and going on


def test_a_training_in_pieces_ends_like_one_in_one_piece(tmp_path: Path) -> None:
    expected = Tiny().train(30)
    found: list[float] = []
    for piece in range(3):
        training = Tiny(seed=piece)
        checkpointer = Checkpointer(tmp_path, training.state, identity={"lr": 1e-2})
        assert checkpointer.load_latest() == (piece > 0)
        found += training.train(10)
        checkpointer.save() if piece else (checkpointer.save_async(), checkpointer.wait())
    assert found == expected


def test_the_newest_are_kept_and_latest_is_the_newest(tmp_path: Path) -> None:
    save_at(started(tmp_path, keep=2), 10, 20, 30, 40)
    assert names_in(tmp_path) == [STEP.format(30), STEP.format(40), "latest.pth"]
    assert (tmp_path / "latest.pth").samefile(tmp_path / STEP.format(40))


def test_two_saves_of_one_step_are_two_files(tmp_path: Path) -> None:
    training = save_at(started(tmp_path), 10)
    training.state.epoch = 1
    save_at(training, 10)
    assert names_in(tmp_path)[:2] == [
        "checkpoints/step_00000010-1.pth",
        "checkpoints/step_00000010.pth",
    ]
    assert started(tmp_path).state.epoch == 1


def test_a_second_async_save_waits_for_the_first(tmp_path: Path) -> None:
    training = started(tmp_path, keep=3)
    for step in (1, 2, 3):
        training.mark(step)
        training.checkpointer.save_async()
    training.mark(99)  # must not reach the copies
    training.checkpointer.wait()
    for step in (1, 2, 3):
        content = checkpoint_file.read(tmp_path / STEP.format(step))
        assert {
            float(v) for t in checkpoint_file.tensors(content["model"]) for v in t.flatten()
        } == {step}


# --- what is found is not as it was written


@pytest.mark.parametrize("save", ["save", "save_async"])
def test_a_truncated_latest_falls_back_to_the_one_before(
    tmp_path: Path, save: str, capsys: pytest.CaptureFixture[str]
) -> None:
    training = save_at(started(tmp_path), 10)
    training.mark(20)
    getattr(training.checkpointer, save)()
    training.checkpointer.wait()
    os.truncate(tmp_path / "latest.pth", 3000)
    again = started(tmp_path)
    assert (again.state.step, again.marks()) == (10, {10.0})
    said = capsys.readouterr().err
    assert "step_00000020.pth: is cut off: the end of its archive is missing; not loaded" in said
    assert names_in(tmp_path) == [
        STEP.format(10),
        f"{STEP.format(20)}.refused-1",
        "latest.pth",
    ]
    assert (tmp_path / "latest.pth").samefile(tmp_path / STEP.format(10))


def test_a_flipped_bit_which_torch_would_load_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_at(started(tmp_path), 10, 20)
    flip_a_bit(tmp_path / STEP.format(20))
    torch.load(tmp_path / STEP.format(20), weights_only=True)
    assert started(tmp_path).marks() == {10.0}
    assert "not loaded, kept as step_00000020.pth.refused-1" in capsys.readouterr().err


def test_where_nothing_is_readable_it_starts_over_and_keeps_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_at(started(tmp_path), 10, 20)
    for step in (10, 20):
        os.truncate(tmp_path / STEP.format(step), 0)
    training = started(tmp_path)
    assert training.state.step == 0
    assert "starting from scratch" in capsys.readouterr().err
    assert [name for name in names_in(tmp_path) if "refused" not in name] == []
    save_at(training, 10)
    assert started(tmp_path).marks() == {10.0}


def test_a_damaged_latest_alone_is_no_reason_to_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "latest.pth").write_bytes(b"PK\x03\x04half")
    assert started(tmp_path).state.step == 0
    assert "starting from scratch" in capsys.readouterr().err


def test_every_start_says_what_it_refused_and_never_deletes_it(tmp_path: Path) -> None:
    for _ in range(3):
        save_at(started(tmp_path), 10, 20)
        flip_a_bit(tmp_path / "latest.pth")
        assert started(tmp_path).state.step == 10
    refused = [name for name in names_in(tmp_path) if "refused" in name]
    assert len(refused) == 3


def test_killed_before_latest_was_replaced_the_newer_one_is_taken(tmp_path: Path) -> None:
    save_at(started(tmp_path), 10, 20)
    checkpoint_file.link(tmp_path / STEP.format(10), tmp_path / "latest.pth")
    assert started(tmp_path).marks() == {20.0}
    assert (tmp_path / "latest.pth").samefile(tmp_path / STEP.format(20))


def test_another_programs_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "state_dict": {}}, tmp_path / "latest.pth")
    before = (tmp_path / "latest.pth").read_bytes()
    with pytest.raises(InputError, match=r"latest\.pth: is not a checkpoint of boxcar\.training"):
        started(tmp_path)
    assert names_in(tmp_path) == ["latest.pth"]
    assert (tmp_path / "latest.pth").read_bytes() == before


def test_a_script_that_forgot_to_load_overwrites_nothing(tmp_path: Path) -> None:
    save_at(started(tmp_path), 10)
    training = Marked(tmp_path)
    for act in (training.checkpointer.save, lambda: training.checkpointer.save_best(1.0)):
        with pytest.raises(InputError, match=r"call checkpointer\.load_latest"):
            act()
    assert names_in(tmp_path) == [STEP.format(10), "latest.pth"]
    Marked(tmp_path / "another").checkpointer.save()


def test_other_settings_are_named(tmp_path: Path) -> None:
    save_at(started(tmp_path, identity={"lr": 0.1, "width": 8}), 10)
    with pytest.raises(InputError, match=r"lr was 0\.1, is 0\.2; data was not given, is x"):
        started(tmp_path, identity={"lr": 0.2, "width": 8, "data": "x"})


def test_another_model_is_named_and_is_no_reason_to_fall_back(tmp_path: Path) -> None:
    save_at(started(tmp_path), 10, 20)
    with pytest.raises(InputError, match=r"model: Error.*size mismatch for weight"):
        started(tmp_path, values=999)
    assert names_in(tmp_path) == [STEP.format(10), STEP.format(20), "latest.pth"]


def test_sharded_and_single_files_are_not_mixed_up(tmp_path: Path) -> None:
    save_at(started(tmp_path), 10)
    with pytest.raises(InputError, match="checkpoints of one file each"):
        started(tmp_path, is_sharded=True)


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="keep should be 1 or more"):
        Marked(tmp_path, keep=0)
    with pytest.raises(InputError, match=r"identity\.where: a PosixPath cannot be kept"):
        Marked(tmp_path, identity={"where": tmp_path})


# --- the anchor


def test_the_anchor_of_a_resume_goes_only_when_a_newer_one_was_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_at(started(tmp_path), 10)
    training = started(tmp_path, keep=1)
    refuse: Any = DamagedError("the disk gave back other bytes")
    monkeypatch.setattr(
        checkpoint_file, "check_intact", lambda *_, **__: (_ for _ in ()).throw(refuse)
    )
    with pytest.raises(DamagedError, match="other bytes"):
        save_at(training, 20)
    # No latest.pth: a script that ends now has not left what it trained last.
    assert names_in(tmp_path) == [STEP.format(10), f"{STEP.format(20)}.refused-1"]
    monkeypatch.undo()
    save_at(training, 30)
    assert names_in(tmp_path) == [
        f"{STEP.format(20)}.refused-1",
        STEP.format(30),
        "latest.pth",
    ]


def test_a_save_does_not_wait_until_what_is_old_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = save_at(started(tmp_path, keep=1), 10)
    may_read, check = threading.Event(), checkpoint_file.check_intact

    def slow(path: Path, **how: bool) -> None:
        assert may_read.wait(LIMIT_S)
        check(path, **how)

    monkeypatch.setattr(checkpoint_file, "check_intact", slow)
    training.mark(20)
    training.checkpointer.save()
    assert names_in(tmp_path) == [STEP.format(10), STEP.format(20), "latest.pth"]
    assert (tmp_path / "latest.pth").samefile(tmp_path / STEP.format(20))
    may_read.set()
    training.checkpointer.wait()
    assert names_in(tmp_path) == [STEP.format(20), "latest.pth"]


@pytest.mark.parametrize("is_sharded", [False, True])
@pytest.mark.parametrize("save", ["save", "save_async"])
def test_a_thread_begins_only_when_the_ranks_have_said_all_to_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: str, is_sharded: bool
) -> None:
    """It would take the interpreter from them, for milliseconds each time."""
    training = started(tmp_path, is_sharded=is_sharded)
    done: list[str] = []
    for kind, name in ((SideGroup, "tell"), (ThreadPoolExecutor, "submit")):
        call = getattr(kind, name)
        monkeypatch.setattr(
            kind, name, lambda *a, call=call, name=name: done.append(name) or call(*a)
        )
    getattr(training.checkpointer, save)()
    assert done.count("submit") > 0 and "tell" not in done[done.index("submit") :]
    training.checkpointer.wait()


def test_damage_that_is_found_behind_a_save_is_raised_by_the_next_which_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    training = save_at(started(tmp_path, keep=1), 10)
    check = checkpoint_file.check_intact

    def damaged(path: Path, **how: bool) -> None:
        if path == tmp_path / STEP.format(20):
            raise DamagedError("the disk gave back other bytes")
        check(path, **how)

    monkeypatch.setattr(checkpoint_file, "check_intact", damaged)
    training.mark(20)
    training.checkpointer.save()
    training.mark(30)
    with pytest.raises(DamagedError, match="other bytes"):
        training.checkpointer.save()
    assert "other bytes" in capsys.readouterr().err
    monkeypatch.undo()
    assert started(tmp_path).state.step == 30


def test_the_next_one_to_begin_in_a_folder_waits_for_what_is_behind_the_last_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = save_at(started(tmp_path, keep=1), 10)
    may_go, unlink = threading.Event(), FileStore.delete

    def late(store: FileStore, name: str) -> None:
        assert may_go.wait(LIMIT_S)
        unlink(store, name)

    monkeypatch.setattr(FileStore, "delete", late)
    training.mark(20)
    training.checkpointer.save()
    threading.Timer(0.05, may_go.set).start()
    started(tmp_path)
    assert names_in(tmp_path) == [STEP.format(20), "latest.pth"]


# --- no room


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() or subprocess.run(mount, check=False).returncode:
        pytest.skip("only root on Linux may mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("save", ["save", "save_async"])
def test_a_full_disk_leaves_the_one_before_and_training_goes_on(
    small_disk: Path, save: str, capsys: pytest.CaptureFixture[str]
) -> None:
    training = save_at(started(small_disk, values=50_000), 10)  # 2.4 MB each
    before = names_in(small_disk)
    training.mark(20)
    with pytest.raises(NoRoomError, match=r"about 2\d{6} bytes are needed to save and 1\d{6}"):
        getattr(training.checkpointer, save)()
        training.checkpointer.wait()
    assert names_in(small_disk) == before
    if save == "save_async":
        assert "was not saved" in capsys.readouterr().err
    (small_disk / STEP.format(10)).unlink()  # a person makes room
    (small_disk / "latest.pth").unlink()
    save_at(training, 30)
    assert started(small_disk, values=50_000).marks() == {30.0}


def test_a_disk_that_fills_up_in_the_middle_leaves_nothing_of_it(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = save_at(started(small_disk, values=50_000), 10)
    before = names_in(small_disk)
    monkeypatch.setattr(checkpoint_file, "_check_room", lambda *_: None)
    training.mark(20)
    with pytest.raises(NoRoomError, match="No space left on device"):
        training.checkpointer.save()
    assert names_in(small_disk) == before


def test_an_error_of_the_thread_is_raised_at_the_next_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = started(tmp_path)

    def broken(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(checkpoint_file, "create_torch_file", broken)
    training.checkpointer.save_async()
    with pytest.raises(OSError, match="Input/output error"):
        training.checkpointer.save()
    monkeypatch.undo()
    save_at(training, 5)
    assert started(tmp_path).marks() == {5.0}


# --- pace


def test_the_pace_says_what_a_save_cost(tmp_path: Path) -> None:
    training = started(tmp_path)
    assert training.checkpointer.pace.steps == 0
    save_at(training, 10)
    pace = training.checkpointer.pace
    assert (pace.step, pace.steps) == (10, 10)
    assert 0 < pace.stall_s < 60
    assert 10_800 < pace.mtbf_s < 11_800
    again = started(tmp_path)
    assert again.checkpointer.pace.step == 10
    assert 5_400 < again.checkpointer.pace.mtbf_s < 6_000  # interrupted once


def test_a_save_that_failed_is_not_due_again_at_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = started(tmp_path)
    monkeypatch.setattr(checkpoint_file, "size_bytes", lambda _: 10**18)
    training.mark(10)
    with pytest.raises(NoRoomError):
        training.checkpointer.save()
    assert training.checkpointer.pace.step == 10


# --- several ranks


def bare(out: Path, **parts: Any) -> Checkpointer:
    """Without an optimizer, whose imports cost every rank a second."""
    state = TrainingState(model=torch.nn.Linear(100, 100), **parts)
    checkpointer = Checkpointer(out, state)
    checkpointer.load_latest()
    return checkpointer


def draw_in_pieces(out: Path) -> list[float]:
    """What comes after the save, as it was and as it is after a resume."""
    me = ranks.join()
    checkpointer = bare(out)
    torch.manual_seed(me.rank)
    checkpointer.save_async()
    drawn = torch.rand(3).tolist()
    checkpointer.wait()
    torch.manual_seed(5)
    bare(out)
    assert torch.rand(3).tolist() == drawn
    ranks.leave()
    return drawn


def test_each_rank_goes_on_with_its_own_random_numbers(tmp_path: Path) -> None:
    one, two = run_ranks(2, draw_in_pieces, tmp_path)
    assert one != two
    assert names_in(tmp_path) == [STEP.format(0), "latest.pth"]


def save_into_one(out: Path, step: int, global_batch: int) -> int:
    ranks.join()
    checkpointer = bare(out, loader=Loader(global_batch))
    found = checkpointer.pace.step
    checkpointer._state.step = step
    checkpointer.save()
    ranks.leave()
    return found


class Loader:
    def __init__(self, global_batch: int) -> None:
        self.global_batch = global_batch

    def state_dict(self) -> dict[str, int]:
        return {"global_batch": self.global_batch}

    def load_state_dict(self, saved: dict[str, int]) -> None:
        pass


def test_another_number_of_ranks_goes_on_only_with_the_same_global_batch(tmp_path: Path) -> None:
    assert run_ranks(2, save_into_one, tmp_path, 10, 64) == [0, 0]
    assert run_ranks(1, save_into_one, tmp_path, 20, 64) == [10]
    with pytest.raises(RanksFailed, match="saved by 1 rank, but now there are 2") as failed:
        run_ranks(2, save_into_one, tmp_path, 30, 32)
    assert failed.value.codes == [1, 1]


def on_a_disk_of_its_own(out: Path) -> None:
    me = ranks.join()
    bare(out / str(me.rank)).save()
    bare(out / str(me.rank))


def test_ranks_that_see_different_disks_are_told_so(tmp_path: Path) -> None:
    with pytest.raises(RanksFailed) as failed:
        run_ranks(2, on_a_disk_of_its_own, tmp_path)
    for log in failed.value.logs:
        assert "rank 1: " in log
        assert "must be one folder for all ranks" in log


def on_a_full_disk(out: Path) -> list[str]:
    ranks.join()
    checkpointer = bare(out)
    said = []
    checkpoint_file.size_bytes = lambda _: 10**18  # type: ignore[assignment]
    for save in (checkpointer.save, checkpointer.save_async):
        try:
            save()
            checkpointer.wait()
        except BoxcarError as error:
            said.append(type(error).__name__)
    ranks.leave()
    return said


def test_all_ranks_learn_that_a_save_failed(tmp_path: Path) -> None:
    assert run_ranks(2, on_a_full_disk, tmp_path) == [["NoRoomError"] * 2] * 2


def test_a_save_after_one_that_failed_in_its_thread_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = started(tmp_path)
    training.mark(10)
    with monkeypatch.context() as full:
        full.setattr(checkpoint_file, "size_bytes", lambda _: 10**18)
        training.checkpointer.save_async()
        with pytest.raises(NoRoomError):
            training.checkpointer.wait()
        training.checkpointer.save_async()
    save_at(training, 20)
    assert started(tmp_path).marks() == {20.0}


def test_a_second_training_in_one_folder_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    script = (
        "import sys, time; sys.path[:0] = sys.argv[2:]\n"
        "from tiny_training import Marked\nfrom pathlib import Path\n"
        "first = Marked(Path(sys.argv[1])); first.checkpointer.load_latest()\n"
        "print('held', flush=True); time.sleep(600)"
    )
    words = [sys.executable, "-c", script, str(tmp_path), *sys.path]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as first:
        assert first.stdout and first.stdout.readline() == b"held\n"
        with pytest.raises(TemporaryError, match="another training saves here"):
            started(tmp_path)
        first.kill()
    save_at(started(tmp_path), 10)


# --- kills


def test_after_every_kill_a_whole_state_is_found(tmp_path: Path) -> None:
    [steps] = run_ranks(1, storm, tmp_path, 10, random.randrange(10**9))
    assert steps == sorted(steps)
    assert steps[-1] > 0


@pytest.mark.parametrize("is_sharded", [False, True])
def test_whatever_step_of_a_save_is_the_last_nothing_that_was_saved_is_lost(
    tmp_path: Path, is_sharded: bool
) -> None:
    [steps] = run_ranks(1, before_each_step, tmp_path, is_sharded)
    assert steps > 12  # files, folders and links of two saves; else the end never came
