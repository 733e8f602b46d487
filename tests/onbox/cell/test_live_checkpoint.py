from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path

import pytest

from boxcar.shared import cadence
from boxcar.shared.disk import checked_copy
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files import resume_pointer
from onbox.cell import live_checkpoint
from onbox.cell.live_checkpoint import LONGEST_S, SHORTEST_S, Mirror, cadence_s, restore


@pytest.fixture
def due_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_checkpoint, "SHORTEST_S", 0.0)
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
    pointer = resume_pointer.read(folder)
    return (folder / pointer.file.path).read_bytes() if pointer else None


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


def test_a_checkpoint_that_vanishes_while_it_is_copied_is_dropped(out, folder):
    save(out, b"step 1")
    live(out, folder).tick(lambda size_bytes: (out / "latest.pth").unlink(missing_ok=True))
    assert resume_pointer.read(folder) is None


def test_nothing_is_mirrored_before_there_is_something(out, folder):
    live(out, folder).tick(ignore)
    assert not folder.exists()


def test_a_checkpoint_that_is_a_folder_is_not_mirrored(out, folder):
    (out / "latest.pth").mkdir()
    live(out, folder).tick(ignore)
    assert resume_pointer.read(folder) is None


@pytest.mark.parametrize("error", [NoRoomError("full"), OSError(errno.EIO, "away")])
def test_a_tier_that_fails_is_not_tried_again_at_once(out, folder, monkeypatch, error):
    tries = []

    def fail(*arguments: object) -> None:
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


def test_a_checkpoint_that_is_a_link_to_another_is_mirrored(out: Path, folder: Path) -> None:
    (out / "step_2.pth").write_bytes(b"two")
    (out / "latest.pth").symlink_to("step_2.pth")
    live(out, folder).tick(ignore)
    assert mirrored(folder) == b"two"


def test_a_checkpoint_that_leads_out_of_the_cell_is_named_and_not_read(
    out: Path, folder: Path
) -> None:
    (out.parent / "secret").write_bytes(b"not yours")
    (out / "latest.pth").symlink_to("../secret")
    with pytest.raises(OSError, match="leads out"):
        live(out, folder).tick(ignore)
    assert not folder.exists()


def test_a_pipe_in_the_checkpoints_place_keeps_nobody_waiting(out: Path, folder: Path) -> None:
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


def test_a_sharded_checkpoint_is_mirrored_and_comes_back(out: Path, folder: Path) -> None:
    save_sharded(out, b"one")
    sharded(out, folder).tick(ignore)
    before = content(out / "ckpt")
    shutil.rmtree(out / "ckpt")
    (out / ".ckpt.unpacking").mkdir()  # of an agent that was killed meanwhile
    assert restore(folder, out, "ckpt")
    assert content(out / "ckpt") == before
    assert [path.name for path in out.iterdir()] == ["ckpt"]


def test_a_sharded_checkpoint_that_is_being_written_is_not_mirrored(
    out: Path, folder: Path
) -> None:
    (out / "ckpt").mkdir()
    (out / "ckpt/__0_0.distcp").write_bytes(b"half")
    sharded(out, folder).tick(ignore)
    save_sharded(out, b"one")
    later = (out / "ckpt/.metadata").stat().st_mtime_ns + 10**9
    os.utime(out / "ckpt/__1_0.distcp", ns=(later, later))
    sharded(out, folder).tick(ignore)
    assert not folder.exists()


def test_a_sharded_checkpoint_that_changes_meanwhile_is_dropped(out: Path, folder: Path) -> None:
    save_sharded(out, b"one")
    mirror = sharded(out, folder)
    mirror.tick(ignore)
    kept = content(folder)
    save_sharded(out, b"two")
    mirror.flush(lambda size_bytes: (out / "ckpt/__0_0.distcp").write_bytes(b"three"))
    assert content(folder) == kept


def test_a_packed_checkpoint_that_is_damaged_is_refused_and_kept(out: Path, folder: Path) -> None:
    save_sharded(out, b"one")
    sharded(out, folder).tick(ignore)
    shutil.rmtree(out / "ckpt")
    (packed,) = [path for path in folder.iterdir() if path.name != "resume.json"]
    packed.write_bytes(packed.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedError, match="SHA-256"):
        restore(folder, out, "ckpt")
    assert packed.exists() and not (out / "ckpt").exists()


def test_a_folder_that_is_no_sharded_checkpoint_is_not_mirrored(out: Path, folder: Path) -> None:
    (out / "ckpt").mkdir()
    (out / "ckpt/model.pth").write_bytes(b"weights")
    sharded(out, folder).tick(ignore)
    assert not folder.exists()


def test_nothing_is_mirrored_where_a_tier_was_unmounted(out: Path, tmp_path: Path) -> None:
    save(out, b"one")
    with pytest.raises(FileNotFoundError, match="mounted"):
        live(out, tmp_path / "tier" / "cells" / "c" / "resume").tick(ignore)
    assert not (tmp_path / "tier").exists()
