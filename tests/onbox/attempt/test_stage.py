from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from boxcar.shared.disk import checked_copy, digest
from boxcar.shared.disk.proven_folder import Seen
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files import codec, release
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.release import Code, Release
from boxcar.shared.paths import ScratchPaths
from onbox.attempt.stage import Stage, check_release, code_files, of_release


def _zip(files: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return written.getvalue()


FILES = {
    "onbox.pyz": _zip({"onbox/__init__.py": b"", "other/__init__.py": b""}),
    "plan.json": b"{}",
    "run_one.sh": b"true\n",
    "run_queue.sh": b"true\n",
    "code/train.py": b"print('hello')\n",
    "code/configs/a b.yaml": b"a: 1\n",
    "code/tool.sh": b"#!/bin/sh\n",
}


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
    assert {path.name for path in wrapper.iterdir()} == {"plan.json", "run_one.sh", "program"}
    assert [path.name for path in (wrapper / "program").iterdir()] == ["onbox"]


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
    with pytest.raises(NoRoomError, match="MB are free"):
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
    own = {"onbox.pyz": archives.files[archives.onbox], "code/program/onbox/begin.py": b"pass\n"}
    pushed = push(tmp_path, FILES | own)
    stage, code = staged(pushed, scratch)
    stage.restore()
    program = scratch.wrapper(pushed.name) / "program"
    begin = program / "onbox/begin.py"
    before = begin.read_bytes()
    (program / "__pycache__").mkdir()
    assert stage.look() == Seen()
    begin.write_bytes(b"another text")
    (program / "onbox/attempt/attempt.py").unlink()
    assert stage.look() == stage.restore() == Seen()
    assert begin.read_bytes() == before
    assert (program / "onbox/attempt/attempt.py").exists() and (program / "__pycache__").exists()
    (code / "program/onbox/begin.py").write_bytes(b"another text")
    assert stage.look().changed == ("program/onbox/begin.py",)


def test_what_is_written_through_another_name_is_found_after_the_attempt(pushed, scratch):
    """As `cp -al` and an edit do it."""
    stage, code = staged(pushed, scratch)
    stage.restore()
    os.link(code / "train.py", code.parent / "other")
    (code.parent / "other").write_text("another text")
    assert stage.look().changed == ("train.py",)
    assert stage.restore().changed == ("train.py",)
    assert stage.look() == Seen()
