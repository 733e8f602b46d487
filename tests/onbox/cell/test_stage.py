from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from boxcar.shared.disk import checked_copy, digest
from boxcar.shared.disk.proven_folder import ProvenFolder, Seen
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files import codec, release
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.release import Code, Release
from boxcar.shared.paths import ScratchPaths
from onbox.cell import stage as stage_of
from onbox.cell.stage import Stage, check_release, code_files, of_release
from onbox.machine.folder_watch import FolderWatch

FILES = {
    "plan.json": b"{}",
    "run_one.sh": b"true\n",
    "run_queue.sh": b"true\n",
    "code/train.py": b"print('hello')\n",
    "code/configs/a b.yaml": b"a: 1\n",
    "code/tool.sh": b"#!/bin/sh\n",
}


@pytest.fixture(autouse=True, params=[1, 1000], ids=["watched", "looked at"])
def watched_from(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Of much code the kernel is asked first; everything holds for little code alike."""
    monkeypatch.setattr(stage_of, "WATCHED_FROM", request.param)
    return int(request.param)


@pytest.fixture
def pushed(tmp_path: Path) -> Path:
    return push(tmp_path, FILES)


def push(root: Path, files: Mapping[str, bytes]) -> Path:
    records = tuple(FileRecord(n, len(d), digest.of_bytes(d)) for n, d in sorted(files.items()))
    described = Release("r", "onbox.pyz", "training.zip", Code(None, False), records)
    folder = root / described.digest
    for name, data in {**files, release.FILE: codec.to_document(described)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "code/tool.sh").chmod(0o755)
    return folder


def test_a_release_as_it_was_pushed_is_taken(pushed):
    assert check_release(pushed).run == "r"


@pytest.mark.parametrize("name", FILES)
def test_a_release_with_one_byte_changed_is_refused_by_the_files_name(pushed, name):
    data = bytearray((pushed / name).read_bytes())
    data[0] ^= 1
    (pushed / name).write_bytes(data)
    with pytest.raises(DamagedError, match=name):
        check_release(pushed)


def test_a_release_with_a_file_missing_or_a_link_is_refused(pushed):
    (pushed / "code/train.py").unlink()
    with pytest.raises(DamagedError, match=r"train\.py is missing"):
        check_release(pushed)
    (pushed / "code/train.py").symlink_to(pushed / "plan.json")
    with pytest.raises(DamagedError, match="symbolic link"):
        check_release(pushed)


def test_a_release_under_another_name_is_refused(pushed):
    other = pushed.rename(pushed.with_name("0" * 64))
    with pytest.raises(DamagedError, match="0000"):
        check_release(other)


def test_a_release_whose_list_was_changed_is_refused(pushed):
    path = pushed / release.FILE
    path.write_bytes(path.read_bytes().replace(b'"run": "r"', b'"run": "s"'))
    with pytest.raises(DamagedError, match=r"release\.json"):
        check_release(pushed)


@pytest.fixture
def scratch(tmp_path: Path) -> ScratchPaths:
    return ScratchPaths(tmp_path / "scratch", "r")


def staged(pushed: Path, scratch: ScratchPaths) -> tuple[Stage, Path]:
    return of_release(pushed, check_release(pushed), scratch), scratch.code(pushed.name)


def test_code_and_wrapper_are_staged_and_nothing_else(pushed, scratch):
    stage, code = staged(pushed, scratch)
    assert stage.restore() == Seen()
    found = {path.relative_to(code).as_posix() for path in code.rglob("*") if path.is_file()}
    assert found == {"train.py", "configs/a b.yaml", "tool.sh"}
    assert (code / "train.py").read_bytes() == FILES["code/train.py"]
    assert (code / "tool.sh").stat().st_mode & 0o111
    assert {file.path for file in code_files(check_release(pushed))} == found
    wrapper = scratch.wrapper(pushed.name)
    assert {path.name for path in wrapper.iterdir()} == {"plan.json", "run_one.sh"}


def test_what_is_staged_already_is_not_copied_again(pushed, scratch):
    stage, code = staged(pushed, scratch)
    stage.restore()
    (code / "data").mkdir()
    before = (code / "train.py").stat().st_ino
    stage, code = staged(pushed, scratch)
    assert stage.restore() == Seen((), ("data/",))
    assert (code / "train.py").stat().st_ino == before


def test_what_was_found_beside_the_code_is_moved_once_and_seen_no_more(pushed, scratch, tmp_path):
    stage, code = staged(pushed, scratch)
    stage.restore()
    (code / "best.pt").touch()
    assert stage.look().added == ("best.pt",)
    assert stage.find_added(["out/best.pt"]) == {"out/best.pt": "best.pt"}
    stage.move_added(tmp_path / "to")
    assert (tmp_path / "to/best.pt").exists()
    assert stage.restore() == stage.look() == Seen()


def test_what_could_not_be_moved_after_a_look_is_found_by_the_next_restore(pushed, scratch):
    stage, code = staged(pushed, scratch)
    stage.restore()
    (code / "best.pt").touch()
    stage.look()
    assert stage.restore().added == ("best.pt",)


def test_staged_code_that_somebody_wrote_into_is_restored_and_named(pushed, scratch):
    stage, code = staged(pushed, scratch)
    stage.restore()
    (code / "train.py").write_bytes(b"print('other')\n")
    stage, code = staged(pushed, scratch)
    assert stage.restore().changed == ("train.py",)
    assert (code / "train.py").read_bytes() == FILES["code/train.py"]


def test_what_one_look_found_as_it_should_be_is_not_looked_at_again_a_moment_later(
    pushed, scratch, monkeypatch
):
    stage, code = staged(pushed, scratch)
    stage.restore()
    assert stage.look() == Seen()
    monkeypatch.setattr(ProvenFolder, "restore", lambda folder: pytest.fail("it was"))
    assert stage.restore() == Seen()
    monkeypatch.undo()
    (code / "train.py").write_bytes(b"print('other')\n")
    assert stage.look().changed == ("train.py",)
    assert stage.restore().changed == ("train.py",)


@pytest.mark.parametrize(
    ("name", "is_of_wrapper"),
    [("", False), ("train.py", False), ("run_one.sh", True), ("onbox.py", True)],
)
def test_what_changed_since_an_older_look_is_not_as_it_was_proven(
    pushed, scratch, monkeypatch, name, is_of_wrapper
):
    stage, code = staged(pushed, scratch)
    assert not stage.is_still_proven()
    stage.restore()
    stage.look()
    monkeypatch.setattr("onbox.cell.stage._FRESH_S", 0.5)
    stage._last_at -= 3600
    folder = scratch.wrapper(pushed.name) if is_of_wrapper else code
    if name:
        (folder / name).write_bytes(b"another text")
    assert stage.is_still_proven() is not bool(name)


def test_code_that_changed_after_the_check_is_not_staged(pushed, scratch):
    stage, code = staged(pushed, scratch)
    (pushed / "code/train.py").write_bytes(b"print('other')\n")
    with pytest.raises(DamagedError, match=r"train\.py"):
        stage.restore()
    assert not (code / "train.py").exists()


def test_a_copy_that_breaks_off_is_completed_by_the_next(pushed, scratch, monkeypatch):
    stage, code = staged(pushed, scratch)
    real = shutil.copy

    def break_off(source: Path, destination: Path) -> None:
        if source.name == "train.py":
            raise OSError(5, "Input/output error", str(source))
        real(source, destination)

    monkeypatch.setattr(shutil, "copy", break_off)
    with pytest.raises(OSError, match="Input"):
        stage.restore()
    assert not (code / "train.py").exists()
    monkeypatch.undo()
    stage, code = staged(pushed, scratch)
    stage.restore()
    assert (code / "train.py").exists()


def test_too_little_room_is_said_before_a_file_is_copied(pushed, scratch, monkeypatch):
    monkeypatch.setattr(checked_copy, "SPARE_BYTES", 1 << 62)
    stage, code = staged(pushed, scratch)
    with pytest.raises(NoRoomError, match="bytes are free"):
        stage.restore()
    assert [path for path in code.rglob("*") if path.is_file()] == []


def test_what_somebody_left_beside_the_wrapper_is_removed_before_an_attempt(pushed, scratch):
    stage, _ = staged(pushed, scratch)
    stage.restore()
    stranger = scratch.wrapper(pushed.name) / "stranger"
    stranger.mkdir()
    (stranger / "signal.py").touch()
    stage.look()
    assert stage.restore() == Seen()
    assert not stranger.exists()


def test_the_program_of_an_attempt_is_put_back_and_no_reason_to_fail_a_cell(
    tmp_path, scratch, archives
):
    """It is Boxcar's own; what lies in a folder of the code's that has its name is not."""
    own = {"onbox.pyz": archives.files[archives.onbox], "code/program/begin.py": b"pass\n"}
    pushed = push(tmp_path, FILES | own)
    stage, code = staged(pushed, scratch)
    stage.restore()
    program = scratch.wrapper(pushed.name) / "program"
    before = (program / "begin.py").read_bytes()
    (program / "__pycache__").mkdir()
    assert stage.look() == Seen()
    assert stage.is_fresh
    (program / "begin.py").write_bytes(b"another text")
    (program / "onbox/cell/attempt.py").unlink()
    assert stage.look() == Seen()
    assert not stage.is_fresh and not stage.is_still_proven()
    assert stage.restore() == Seen()
    assert (program / "begin.py").read_bytes() == before
    assert (program / "onbox/cell/attempt.py").exists() and (program / "__pycache__").exists()
    (code / "program/begin.py").write_bytes(b"another text")
    assert stage.look().changed == ("program/begin.py",)


def through_another_name(path: Path, text: str) -> None:
    """As `cp -al` and an edit do it: the kernel tells of nothing in the folder of the first."""
    other = path.parent.parent.parent / "other"
    os.link(path, other)
    other.write_text(text)
    other.unlink()


def after_an_hour(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Since its last look nothing has run."""
    monkeypatch.setattr("onbox.cell.stage._FRESH_S", 0.5)
    assert stage._last_at
    stage._last_at -= 3600
    return stage


def idle(pushed: Path, scratch: ScratchPaths) -> tuple[Stage, Path]:
    """Of an agent that waits for lines, behind its first cell."""
    stage, code = staged(pushed, scratch)
    stage.restore()
    stage.look()
    stage.look_while_idle()
    return stage, code


def test_before_an_appended_line_only_what_the_kernel_tells_of_is_asked_for(
    pushed, scratch, monkeypatch
):
    stage, code = staged(pushed, scratch)
    stage.restore()
    (code / "__pycache__").mkdir()  # which the look removes
    assert stage.look() == Seen()
    stage.look_while_idle()
    (code / "configs" / "new.yaml").touch()
    (code / "configs" / "new.yaml").unlink()
    monkeypatch.setattr(ProvenFolder, "_walk", lambda folder: pytest.fail("all of it"))
    assert after_an_hour(stage, monkeypatch).is_still_proven()


def test_what_changes_between_an_attempt_and_the_first_word_of_the_kernel_is_seen(pushed, scratch):
    stage, code = staged(pushed, scratch)
    stage.restore()
    stage.look()
    (code / "train.py").write_text("another text")
    stage.look_while_idle()
    assert not stage.is_still_proven()
    assert stage.restore().changed == ("train.py",)


@pytest.mark.parametrize("name", ["code/train.py", "run_one.sh"])
def test_what_it_does_not_tell_of_then_is_found_after_the_attempt(
    pushed, scratch, monkeypatch, name, watched_from
):
    stage, code = idle(pushed, scratch)
    folder = code if name.startswith("code/") else scratch.wrapper(pushed.name)
    path = folder / name.removeprefix("code/")
    through_another_name(path, "another text")
    assert after_an_hour(stage, monkeypatch).is_still_proven()
    is_late = folder == code and watched_from == 1
    assert stage.look().changed == (() if is_late else (path.name,))
    assert stage.changed_by(time.time()) == ((path.name,) if is_late else ())


@pytest.mark.parametrize("is_idle", [False, True])
def test_after_an_attempt_that_nobody_looked_at_all_is_looked_at(
    pushed, scratch, monkeypatch, watched_from, is_idle
):
    stage, code = idle(pushed, scratch)
    stage.restore()  # before the attempt
    through_another_name(scratch.wrapper(pushed.name) / "run_one.sh", "another text")
    through_another_name(code / "train.py", "another text")
    after_an_hour(stage, monkeypatch)
    if is_idle:
        stage.look_while_idle()
    assert not stage.is_still_proven()
    assert stage.restore().changed == ("run_one.sh", "train.py")


def test_little_code_is_not_watched_while_cells_follow_each_other(
    pushed, scratch, monkeypatch, watched_from
):
    stage, _ = staged(pushed, scratch)
    stage.restore()
    begun = []
    monkeypatch.setattr(FolderWatch, "begin", lambda watch, root, below: begun.append(root))
    for _ in range(2):
        stage.look()
        after_an_hour(stage, monkeypatch).is_still_proven()
    assert bool(begun) is (watched_from == 1)


def test_what_the_kernel_does_not_tell_of_is_found_before_a_result_counts(
    pushed, scratch, watched_from
):
    stage, code = staged(pushed, scratch)
    stage.restore()
    assert stage.look() == Seen()  # everything, and from here on what is told
    assert stage.look() == Seen()
    assert stage.changed_by(time.time()) == ()
    before = time.time() - 1.0
    through_another_name(code / "train.py", "print('other')")
    seen = stage.look()
    if watched_from > 1:
        assert seen.changed == ("train.py",)
        assert stage.changed_by(time.time()) == ()  # that was said
        return
    assert seen == Seen()
    assert stage.is_fresh
    assert stage.changed_by(before) == ()  # who ended before did not do it
    assert stage.changed_by(time.time()) == ("train.py",)
    assert not stage.is_fresh
    assert stage.look().changed == ("train.py",)
    assert stage.restore().changed == ("train.py",)
    assert stage.look() == stage.restore() == Seen()


def test_a_result_that_an_earlier_agent_had_not_settled_counts_where_the_code_is_as_it_was(
    pushed, scratch, watched_from
):
    stage, code = staged(pushed, scratch)
    assert stage.changed_by(time.time()) == ()  # nothing is there any more
    stage.restore()
    stage, code = staged(pushed, scratch)
    assert stage.changed_by(time.time()) == ()
    through_another_name(code / "train.py", "print('other')")
    stage, code = staged(pushed, scratch)
    # Of little code everything was looked at before the success was said.
    expected = ("train.py",) if watched_from == 1 else ()
    for _ in range(2):  # of each result
        assert stage.changed_by(time.time()) == expected
    assert stage.restore().changed == ("train.py",)
