from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from boxcar.shared.disk import checked_copy, digest
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files import codec, release
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.release import Code, Release
from onbox.cell.stage import check_release, code_files, stage_code

FILES = {
    "plan.json": b"{}",
    "code/train.py": b"print('hello')\n",
    "code/configs/a b.yaml": b"a: 1\n",
    "code/tool.sh": b"#!/bin/sh\n",
}


@pytest.fixture
def pushed(tmp_path: Path) -> Path:
    records = tuple(FileRecord(n, len(d), digest.of_bytes(d)) for n, d in sorted(FILES.items()))
    described = Release("r", "onbox.pyz", "training.zip", Code(None, False), records)
    folder = tmp_path / described.digest
    for name, data in {**FILES, release.FILE: codec.to_document(described)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "code/tool.sh").chmod(0o755)
    return folder


@pytest.fixture
def target(tmp_path: Path, pushed: Path) -> Path:
    return tmp_path / "scratch/code" / pushed.name


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


def test_the_code_is_staged_whole_and_nothing_else(pushed, target):
    stage_code(pushed, check_release(pushed), target)
    found = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert found == {"train.py", "configs/a b.yaml", "tool.sh"}
    assert (target / "train.py").read_bytes() == FILES["code/train.py"]
    assert (target / "tool.sh").stat().st_mode & 0o111
    assert {file.path for file in code_files(check_release(pushed))} == found


def test_what_is_staged_already_is_not_copied_again(pushed, target):
    stage_code(pushed, check_release(pushed), target)
    (target / "__pycache__").mkdir()
    before = (target / "train.py").stat().st_ino
    stage_code(pushed, check_release(pushed), target)
    assert (target / "train.py").stat().st_ino == before
    assert (target / "__pycache__").is_dir()


def test_staged_code_that_somebody_wrote_into_is_staged_anew(pushed, target):
    stage_code(pushed, check_release(pushed), target)
    (target / "train.py").write_bytes(b"print('other')\n")
    stage_code(pushed, check_release(pushed), target)
    assert (target / "train.py").read_bytes() == FILES["code/train.py"]


def test_what_a_killed_agent_left_is_removed(pushed, target):
    target.parent.mkdir(parents=True)
    left = target.with_name(f".{target.name}.abcd.part")
    (left / "configs").mkdir(parents=True)
    stage_code(pushed, check_release(pushed), target)
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_code_that_changed_after_the_check_is_not_staged(pushed, target):
    found = check_release(pushed)
    (pushed / "code/train.py").write_bytes(b"print('other')\n")
    with pytest.raises(DamagedError, match=r"train\.py"):
        stage_code(pushed, found, target)
    assert not target.exists()


def test_a_copy_that_breaks_off_leaves_nothing_under_the_name(pushed, target, monkeypatch):
    found = check_release(pushed)
    real = shutil.copy

    def break_off(source: Path, destination: Path) -> None:
        if source.name == "train.py":
            raise OSError(5, "Input/output error", str(source))
        real(source, destination)

    monkeypatch.setattr(shutil, "copy", break_off)
    with pytest.raises(OSError, match="Input"):
        stage_code(pushed, found, target)
    assert not target.exists()
    monkeypatch.undo()
    stage_code(pushed, found, target)
    assert (target / "train.py").exists()


def test_too_little_room_is_said_before_a_file_is_copied(pushed, target, monkeypatch):
    monkeypatch.setattr(checked_copy, "SPARE_BYTES", 1 << 62)
    with pytest.raises(NoRoomError, match="bytes are free"):
        stage_code(pushed, check_release(pushed), target)
    assert list(target.parent.iterdir()) == []
