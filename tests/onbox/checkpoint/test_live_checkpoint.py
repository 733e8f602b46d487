from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from boxcar.shared.artifacts import cadence, resume_match
from boxcar.shared.artifacts.seen_checkpoint import UNCHANGED_S
from boxcar.shared.disk import checked_copy, sink
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files import codec, resume_pointer
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume
from onbox.checkpoint import live_checkpoint
from onbox.checkpoint.live_checkpoint import LONGEST_S, SHORTEST_S, Mirror, cadence_s
from onbox.checkpoint.restored_checkpoint import restore


@pytest.fixture
def due_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_checkpoint, "SHORTEST_S", 0.0)
    monkeypatch.setattr(live_checkpoint, "STILL_S", 0.0)
    monkeypatch.setattr(live_checkpoint, "cadence_s", lambda copy_s, mtbf_s: 0.0)


@pytest.fixture
def out(tmp_path: Path, due_at_once: None) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "resume"


def save(out: Path, data: bytes) -> None:
    """As a script does that saves whole."""
    (out / "new").write_bytes(data)
    (out / "new").replace(out / "latest.pth")


def live(out: Path, folder: Path, attempt: int = 1) -> Mirror:
    return Mirror("c", attempt, out, "latest.pth", folder)


def mirrored(folder: Path) -> bytes | None:
    pointer = resume_pointer.read_resume_pointer(folder)
    return (folder / pointer.file.path).read_bytes() if pointer else None


def age(path: Path, age_s: float) -> None:
    at = time.time() - age_s
    os.utime(path, (at, at))


def ignore(size_bytes: int) -> None:
    pass


def test_the_cadence_is_young_and_dalys_within_bounds():
    assert cadence_s(10.0, cadence.PRIOR_S) == pytest.approx((2 * cadence.PRIOR_S * 10) ** 0.5)
    assert cadence_s(0.0, cadence.PRIOR_S) == SHORTEST_S
    assert cadence_s(1e9, cadence.PRIOR_S) == LONGEST_S


def test_a_longer_copy_and_a_safer_box_are_mirrored_less_often():
    times = [cadence_s(copy_s, cadence.PRIOR_S) for copy_s in (0.1, 1.0, 10.0, 60.0)]
    assert times == sorted(times)


def test_a_checkpoint_is_mirrored_and_comes_back(out, folder):
    save(out, b"step 1")
    live(out, folder).tick(ignore)
    (out / "latest.pth").unlink()
    assert restore(folder, out, "latest.pth")
    assert (out / "latest.pth").read_bytes() == b"step 1"


def test_a_checkpoint_in_a_folder_of_its_own_comes_back_there(out, folder):
    (out / "ckpt").mkdir()
    save(out / "ckpt", b"step 1")
    Mirror("c", 1, out, "ckpt/latest.pth", folder).tick(ignore)
    (out / "ckpt/latest.pth").unlink()
    (out / "ckpt").rmdir()
    assert restore(folder, out, "ckpt/latest.pth")
    assert (out / "ckpt/latest.pth").read_bytes() == b"step 1"


def test_only_the_newest_is_kept_and_an_old_one_is_not_copied_again(out, folder):
    one = live(out, folder)
    for step in range(3):
        save(out, b"step %d" % step)
        one.tick(ignore)
        names = {path.name for path in folder.iterdir()}
        one.tick(lambda size_bytes: pytest.fail("it was copied again"))
        assert {path.name for path in folder.iterdir()} == names
        assert len(names) == 2
    assert mirrored(folder) == b"step 2"


def test_what_a_killed_copy_left_is_removed(out, folder):
    folder.mkdir()
    (folder / ".1-latest.pth.abcd.part").write_bytes(b"half")
    save(out, b"step 1")
    live(out, folder).tick(ignore)
    assert len(list(folder.iterdir())) == 2


def test_a_checkpoint_that_changes_while_it_is_copied_is_dropped_for_the_one_before(out, folder):
    one = live(out, folder)
    save(out, b"step 1")
    one.tick(ignore)
    save(out, b"step 2")
    one.tick(lambda size_bytes: save(out, b"step 3"))
    assert mirrored(folder) == b"step 1"
    assert len(list(folder.iterdir())) == 2
    one.tick(ignore)
    assert mirrored(folder) == b"step 3"


def test_a_copy_is_behind_once_a_newer_checkpoint_is_complete(out, folder):
    mirror, found = live(out, folder), []

    def on_chunk(size_bytes: int) -> None:
        found.append(mirror.is_behind())
        save(out, b"another, and longer")
        found.append(mirror.is_behind())

    assert not mirror.is_behind()
    save(out, b"one")
    mirror.tick(on_chunk)
    assert found[:2] == [False, True]
    assert not mirror.is_behind()


def test_a_checkpoint_that_vanishes_while_it_is_copied_is_dropped(out, folder):
    save(out, b"step 1")
    live(out, folder).tick(lambda size_bytes: (out / "latest.pth").unlink(missing_ok=True))
    assert resume_pointer.read_resume_pointer(folder) is None


def test_nothing_is_mirrored_before_there_is_something(out, folder):
    live(out, folder).tick(ignore)
    assert not folder.exists()


def test_a_checkpoint_that_is_a_folder_is_not_mirrored(out, folder):
    (out / "latest.pth").mkdir()
    live(out, folder).tick(ignore)
    assert resume_pointer.read_resume_pointer(folder) is None


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much the disk is told to begin with each time, bytes."""
    told: list[int] = []
    monkeypatch.setattr(sink, "begin", lambda fd, start, size: told.append(size))
    return told


def test_a_copy_has_little_on_its_way_to_the_disk_also_a_packed_one(out, folder, parts):
    save(out, bytes(9 << 20))
    live(out, folder).tick(ignore)
    (out / "step").mkdir()
    (out / "step" / "model.bin").write_bytes(bytes(9 << 20))
    age(out / "step" / "model.bin", 2 * UNCHANGED_S)
    Mirror("c", 1, out, "step/", folder).tick(ignore)
    assert len(parts) == 4 and max(parts) < 5 << 20


@pytest.mark.parametrize("error", [NoRoomError("full"), OSError(errno.EIO, "away")])
def test_a_tier_that_fails_is_not_tried_again_at_once(out, folder, monkeypatch, error):
    tries = []

    def fail(*arguments: object, **options: object) -> None:
        tries.append(1)
        raise error

    monkeypatch.setattr(checked_copy, "checked_copy", fail)
    monkeypatch.setattr(live_checkpoint, "cadence_s", lambda copy_s, mtbf_s: 3600.0)
    save(out, b"step 1")
    one = live(out, folder)
    with pytest.raises(type(error)):
        one.tick(ignore)
    one.tick(ignore)
    assert len(tries) == 1


def test_too_little_room_is_seen_before_a_byte_is_copied(out, folder, monkeypatch):
    monkeypatch.setattr(checked_copy, "SPARE_BYTES", 1 << 62)
    save(out, b"step 1")
    with pytest.raises(NoRoomError):
        live(out, folder).tick(lambda size_bytes: pytest.fail("it was copied"))


def test_a_checkpoint_on_scratch_is_not_replaced_by_the_mirrored_one(out, folder):
    save(out, b"step 1")
    live(out, folder).tick(ignore)
    save(out, b"step 2")
    assert not restore(folder, out, "latest.pth")
    assert (out / "latest.pth").read_bytes() == b"step 2"


def test_where_nothing_was_mirrored_nothing_comes_back(out, folder):
    assert not restore(folder, out, "latest.pth")
    assert list(out.iterdir()) == []


def test_a_mirror_with_one_byte_changed_is_refused_and_kept(out, folder):
    save(out, b"step 1")
    live(out, folder).tick(ignore)
    (out / "latest.pth").unlink()
    path = next(path for path in folder.iterdir() if path.name != resume_pointer.FILE)
    path.write_bytes(b"step 9")
    with pytest.raises(DamagedError, match="SHA-256"):
        restore(folder, out, "latest.pth")
    assert path.read_bytes() == b"step 9"
    assert not (out / "latest.pth").exists()


def test_a_mirror_without_its_file_is_refused(out, folder):
    save(out, b"step 1")
    live(out, folder).tick(ignore)
    (out / "latest.pth").unlink()
    next(path for path in folder.iterdir() if path.name != resume_pointer.FILE).unlink()
    with pytest.raises(DamagedError, match="missing"):
        restore(folder, out, "latest.pth")


def test_killed_at_any_step_the_mirror_holds_a_whole_checkpoint(out, folder):
    save(out, b"step 1")
    live(out, folder).tick(ignore)
    save(out, b"step 2")
    step = 0
    while _dies_at(step := step + 1, out, folder):
        assert mirrored(folder) in (b"step 1", b"step 2"), f"killed at step {step}"
    assert step > 5
    assert mirrored(folder) == b"step 2"


def _dies_at(step: int, out: Path, folder: Path) -> bool:
    """Mirror in a child that ends before its file operation of this number; whether it did."""
    pid = os.fork()
    if pid == 0:
        count = iter(range(1, 1000))
        watched = {"open", "os.rename", "os.remove", "os.mkdir"}

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            if event in watched and str(folder) in str(arguments[0]) and next(count) == step:
                os._exit(1)

        code = 2
        try:
            sys.addaudithook(hook)
            live(out, folder).tick(ignore)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, 1)
    return code == 1


def test_a_checkpoint_that_is_a_link_to_another_is_mirrored(out, folder):
    (out / "step_2.pth").write_bytes(b"two")
    (out / "latest.pth").symlink_to("step_2.pth")
    live(out, folder).tick(ignore)
    assert mirrored(folder) == b"two"


def test_a_checkpoint_that_leads_out_of_the_cell_is_named_and_not_read(out, folder):
    (out.parent / "secret").write_bytes(b"not yours")
    (out / "latest.pth").symlink_to("../secret")
    with pytest.raises(OSError, match="leads out"):
        live(out, folder).tick(ignore)
    assert not folder.exists()


def test_a_pipe_in_the_checkpoints_place_keeps_nobody_waiting(out, folder):
    os.mkfifo(out / "latest.pth")
    live(out, folder).tick(ignore)
    assert not folder.exists()


# --- a folder that is a sharded checkpoint


def save_sharded(out: Path, data: bytes) -> None:
    """As DCP does: the shards first, the index last."""
    (out / "ckpt").mkdir(exist_ok=True)
    for name in ("__0_0.distcp", "__1_0.distcp", ".metadata"):
        (out / "ckpt" / name).write_bytes(data + name.encode())


def sharded(out: Path, folder: Path) -> Mirror:
    return Mirror("c", 1, out, "ckpt", folder)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_sharded_checkpoint_is_mirrored_and_comes_back(out, folder):
    save_sharded(out, b"one")
    sharded(out, folder).tick(ignore)
    before = content(out / "ckpt")
    shutil.rmtree(out / "ckpt")
    (out / ".ckpt.unpacking").mkdir()  # of an agent that was killed meanwhile
    assert restore(folder, out, "ckpt")
    assert content(out / "ckpt") == before
    assert [path.name for path in out.iterdir()] == ["ckpt"]


def test_a_sharded_checkpoint_that_is_being_written_is_not_mirrored(out, folder):
    (out / "ckpt").mkdir()
    (out / "ckpt/__0_0.distcp").write_bytes(b"half")
    sharded(out, folder).tick(ignore)
    save_sharded(out, b"one")
    later = (out / "ckpt/.metadata").stat().st_mtime_ns + 10**9
    os.utime(out / "ckpt/__1_0.distcp", ns=(later, later))
    sharded(out, folder).tick(ignore)
    assert not folder.exists()


def test_a_sharded_checkpoint_that_changes_meanwhile_is_dropped(out, folder):
    save_sharded(out, b"one")
    mirror = sharded(out, folder)
    mirror.tick(ignore)
    kept = content(folder)
    save_sharded(out, b"two")
    mirror.flush(lambda size_bytes: (out / "ckpt/__0_0.distcp").write_bytes(b"three"))
    assert content(folder) == kept


def test_a_packed_checkpoint_that_is_damaged_is_refused_and_kept(out, folder):
    save_sharded(out, b"one")
    sharded(out, folder).tick(ignore)
    shutil.rmtree(out / "ckpt")
    (packed,) = [path for path in folder.iterdir() if path.name != "resume.json"]
    packed.write_bytes(packed.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedError, match="SHA-256"):
        restore(folder, out, "ckpt")
    assert packed.exists() and not (out / "ckpt").exists()


def test_a_folder_without_an_index_is_mirrored_once_it_was_unchanged_for_a_minute(out, folder):
    (out / "ckpt").mkdir()
    (out / "ckpt/model.pth").write_bytes(b"weights")
    sharded(out, folder).tick(ignore)
    assert not folder.exists()
    age(out / "ckpt/model.pth", UNCHANGED_S + 1)
    sharded(out, folder).tick(ignore)
    assert resume_pointer.read_resume_pointer(folder)


def test_a_sharded_checkpoint_that_came_back_is_whole_again(out, folder):
    save_sharded(out, b"one")
    sharded(out, folder).tick(ignore)
    shutil.rmtree(out / "ckpt")
    restore(folder, out, "ckpt")
    (seen,) = resume_match.find_checkpoints(out, "ckpt")
    assert seen.is_whole(time.time_ns())


def test_a_link_inside_a_folder_comes_back_as_the_file_that_it_names(out, folder):
    save_sharded(out, b"one")
    (out / "ckpt/tokenizer.json").symlink_to(".metadata")
    sharded(out, folder).tick(ignore)
    before = content(out / "ckpt")
    shutil.rmtree(out / "ckpt")
    restore(folder, out, "ckpt")
    assert content(out / "ckpt") == before


def test_a_folder_with_a_link_out_of_it_is_not_mirrored_without_that_part(out, folder):
    save_sharded(out, b"one")
    (out / "ckpt/model.pt").symlink_to("../model.pt")
    (out / "model.pt").write_bytes(b"weights")
    with pytest.raises(OSError, match="leads out"):
        sharded(out, folder).tick(ignore)
    assert resume_pointer.read_resume_pointer(folder) is None


def test_nothing_is_mirrored_where_a_tier_was_unmounted(out, tmp_path):
    save(out, b"one")
    with pytest.raises(FileNotFoundError, match="mounted"):
        live(out, tmp_path / "tier" / "cells" / "c" / "resume").tick(ignore)
    assert not (tmp_path / "tier").exists()


# --- a pattern

STEPS = "checkpoints/step_*.pt"


def save_step(out: Path, step: int, data: bytes = b"") -> Path:
    path = out / f"checkpoints/step_{step}.pt"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data or b"step %d" % step)
    return path


def save_trainers(out: Path, step: int) -> Path:
    """As the Trainer of transformers does: its state last."""
    folder = out / f"checkpoint-{step}"
    folder.mkdir()
    for name in ("model.safetensors", "optimizer.pt", "trainer_state.json"):
        (folder / name).write_bytes(b"%d %s" % (step, name.encode()))
    return folder


def of_pattern(out: Path, folder: Path, resume: str = STEPS, **more: Any) -> Mirror:
    return Mirror("c", 1, out, resume, folder, **more)


def test_the_newest_match_is_mirrored_and_comes_back_under_its_own_name(out, folder):
    for step in (90, 100):
        save_step(out, step)
    of_pattern(out, folder).tick(ignore)
    pointer = resume_pointer.read_resume_pointer(folder)
    assert pointer and pointer.path == "checkpoints/step_100.pt"
    shutil.rmtree(out / "checkpoints")
    assert restore(folder, out, STEPS)
    assert {path.name: path.read_bytes() for path in (out / "checkpoints").iterdir()} == {
        "step_100.pt": b"step 100"
    }


def test_a_newer_match_takes_the_place_of_the_one_before(out, folder):
    one = of_pattern(out, folder)
    for step in (9, 10):
        save_step(out, step)
        one.tick(ignore)
        assert mirrored(folder) == b"step %d" % step
    assert len(list(folder.iterdir())) == 2


def test_a_match_that_is_written_slowly_is_mirrored_when_it_stands_still(out, folder, monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: clock.now_s, time_ns=time.time_ns, now_s=0.0)
    monkeypatch.setattr(live_checkpoint, "time", clock)
    monkeypatch.setattr(live_checkpoint, "STILL_S", 2.0)
    one = of_pattern(out, folder)
    for now_s, data in ((0.0, b"h"), (2.0, b"ha"), (2.1, b"hal"), (4.1, b"half")):
        clock.now_s = now_s
        save_step(out, 2, data)
        one.tick(ignore)
    assert mirrored(folder) is None
    for clock.now_s in (4.2, 6.2):
        one.tick(ignore)
    assert mirrored(folder) == b"half"


def test_between_the_two_looks_at_a_match_some_time_passes(out, folder, monkeypatch):
    monkeypatch.setattr(live_checkpoint, "STILL_S", 3600.0)
    save_step(out, 1)
    one = of_pattern(out, folder)
    for _ in range(3):
        one.tick(ignore)
    assert not folder.exists()
    one.flush(ignore)  # the box goes away: now or never
    assert mirrored(folder) == b"step 1"


def test_a_folder_of_a_pattern_is_mirrored_and_comes_back_under_its_own_name(out, folder):
    for step in (500, 1000):
        save_trainers(out, step)
    before = content(out / "checkpoint-1000")
    of_pattern(out, folder, "checkpoint-*/").tick(ignore)
    for step in (500, 1000):
        shutil.rmtree(out / f"checkpoint-{step}")
    assert restore(folder, out, "checkpoint-*/")
    assert [path.name for path in out.iterdir()] == ["checkpoint-1000"]
    assert content(out / "checkpoint-1000") == before
    chosen = resume_match.chosen(out, "checkpoint-*/")
    assert chosen == out / "checkpoint-1000"


def test_a_folder_without_an_index_is_complete_as_soon_as_it_came_back(out, folder):
    save_trainers(out, 500)
    (out / "checkpoint-500/trainer_state.json").unlink()
    for path in (out / "checkpoint-500").iterdir():
        age(path, UNCHANGED_S + 1)
    of_pattern(out, folder, "checkpoint-*/").tick(ignore)
    shutil.rmtree(out / "checkpoint-500")
    assert restore(folder, out, "checkpoint-*/")
    assert resume_match.chosen(out, "checkpoint-*/") == out / "checkpoint-500"


def test_a_complete_match_on_scratch_is_not_joined_by_the_mirrored_one(out, folder):
    save_step(out, 100)
    of_pattern(out, folder).tick(ignore)
    (out / "checkpoints/step_100.pt").unlink()
    save_step(out, 50)
    assert not restore(folder, out, STEPS)
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["step_50.pt"]


def test_a_match_that_a_kill_cut_off_gives_way_to_the_mirrored_one_of_its_name(out, folder):
    save_trainers(out, 500)
    of_pattern(out, folder, "checkpoint-*/").tick(ignore)
    before = content(out / "checkpoint-500")
    for name in ("trainer_state.json", "optimizer.pt"):
        (out / "checkpoint-500" / name).unlink()
    (out / "checkpoint-500/scaler.pt").write_bytes(b"of another save")
    assert restore(folder, out, "checkpoint-*/")
    assert content(out / "checkpoint-500") == before


def test_a_cut_match_beside_it_does_not_keep_the_mirrored_one_away(out, folder):
    save_step(out, 100)
    of_pattern(out, folder).tick(ignore)
    (out / "checkpoints/step_100.pt").unlink()
    save_step(out, 200, b"PK\x03\x04cut")
    assert restore(folder, out, STEPS)
    assert resume_match.chosen(out, STEPS) == out / "checkpoints/step_100.pt"


@pytest.mark.parametrize("resume", ["last*.ckpt", "checkpoints/step_*/", "checkpoints/*_9.pt"])
def test_a_mirrored_match_that_the_job_does_not_mean_any_more_is_said_and_kept(out, folder, resume):
    save_step(out, 100)
    of_pattern(out, folder).tick(ignore)
    shutil.rmtree(out / "checkpoints")
    said = []
    assert not restore(folder, out, resume, lambda *words: said.append(words))
    [(what, text)] = said
    assert what == "resume_unfit"
    assert "checkpoints/step_100.pt is not what" in text and resume in text
    assert mirrored(folder) == b"step 100"
    assert list(out.iterdir()) == []


def test_nothing_is_put_back_through_a_link_out_of_the_cell(out, folder):
    save_step(out, 100)
    of_pattern(out, folder).tick(ignore)
    shutil.rmtree(out / "checkpoints")
    (out.parent / "elsewhere").mkdir()
    (out / "checkpoints").symlink_to("../elsewhere")
    said = []
    assert not restore(folder, out, STEPS, lambda *words: said.append(words))
    assert "leads out" in said[0][1]
    assert list((out.parent / "elsewhere").iterdir()) == []


def test_nothing_is_put_back_where_out_itself_is_a_link(out, folder):
    save_step(out, 100)
    of_pattern(out, folder).tick(ignore)
    shutil.rmtree(out)
    (out.parent / "elsewhere").mkdir()
    out.symlink_to("elsewhere")
    said = []
    assert not restore(folder, out, STEPS, lambda *words: said.append(words))
    assert "{out} is a link" in said[0][1]
    assert list((out.parent / "elsewhere").iterdir()) == []


def test_a_pointer_that_leads_out_of_the_cell_is_refused(out, folder):
    folder.mkdir()
    (folder / "x").write_bytes(b"x")
    pointer = Resume("c", 1, "2026-11-21T03:28:14.700Z", "../step_1.pt", FileRecord("x", 1, ""))
    (folder / resume_pointer.FILE).write_bytes(codec.to_document(pointer))
    with pytest.raises(DamagedError, match="leads out of"):
        restore(folder, out, ".*/step_*.pt")


def test_an_old_pointer_of_a_plain_path_has_only_its_last_part(out, folder):
    save(out, b"step 1")
    live(out, folder).tick(ignore)
    pointer = resume_pointer.read_resume_pointer(folder)
    assert pointer and pointer.path == "latest.pth"
    assert restore(folder, out, "ckpts/latest.pth")
    assert (out / "ckpts/latest.pth").read_bytes() == b"step 1"


@pytest.mark.parametrize("asked", ["one", None])
def test_a_checkpoint_comes_back_to_the_saying_that_saved_it(out, folder, asked):
    save(out, b"step 1")
    Mirror("c", 1, out, "latest.pth", folder, saying="one").tick(ignore)
    (out / "latest.pth").unlink()
    assert restore(folder, out, "latest.pth", asked=asked)


def test_a_checkpoint_of_another_saying_is_said_and_left(out, folder):
    save(out, b"step 1")
    Mirror("c", 1, out, "latest.pth", folder, saying="one").tick(ignore)
    (out / "latest.pth").unlink()
    said = []
    assert not restore(folder, out, "latest.pth", lambda *words: said.append(words), asked="two")
    assert [what for what, _ in said] == ["resume_unfit"]
    assert "another config or line" in said[0][1] and "starts over" in said[0][1]
    assert not (out / "latest.pth").exists() and mirrored(folder) == b"step 1"


def test_an_older_pointer_without_a_saying_is_taken(out, folder):
    save(out, b"step 1")
    live(out, folder).tick(ignore)
    (out / "latest.pth").unlink()
    assert restore(folder, out, "latest.pth", asked="two")


# --- what a person should know


def said_of(out: Path, folder: Path, resume: str, ticks: int = 3) -> list[tuple[str, str]]:
    said: list[tuple[str, str]] = []
    one = of_pattern(out, folder, resume, warn=lambda *words: said.append(words))
    for _ in range(ticks):
        one.tick(ignore)
    return said


@pytest.mark.parametrize("resume", [STEPS, "latest.pth", "ckpt/"])
def test_a_checkpoint_that_never_appears_is_said_once(out, folder, monkeypatch, resume):
    assert said_of(out, folder, resume) == [], "it has not run for long"
    monkeypatch.setattr(live_checkpoint, "NEVER_S", 0.0)
    [(what, text)] = said_of(out, folder, resume)
    assert what == "no_checkpoint"
    assert resume in text


def test_one_that_is_there_or_was_there_is_not_missed(out, folder, monkeypatch):
    monkeypatch.setattr(live_checkpoint, "NEVER_S", 0.0)
    save_step(out, 1, b"PK\x03\x04it is being written")
    said: list[tuple[str, str]] = []
    one = of_pattern(out, folder, warn=lambda *words: said.append(words))
    one.tick(ignore)
    (out / "checkpoints/step_1.pt").unlink()
    one.tick(ignore)
    assert said == []


def test_a_pattern_that_matches_both_kinds_takes_the_one_that_is_meant_and_says_so(out, folder):
    save_trainers(out, 500)
    (out / "checkpoint-400").write_bytes(b"file")
    [(what, text)] = said_of(out, folder, "checkpoint-*")
    assert what == "resume_kind"
    assert "the folder checkpoint-500" in text and "end it with /" in text
    assert mirrored(folder) == b"file"
    [(_, text)] = said_of(out, folder, "checkpoint-*/")
    assert "the file checkpoint-400" in text
    pointer = resume_pointer.read_resume_pointer(folder)
    assert pointer and pointer.path == "checkpoint-500"


def test_a_match_that_leads_out_of_the_cell_is_passed_over(out, folder):
    save_step(out, 1)
    (out.parent / "secret").write_bytes(b"not yours")
    (out / "checkpoints/step_2.pt").symlink_to("../../secret")
    of_pattern(out, folder).tick(ignore)
    assert mirrored(folder) == b"step 1"
