from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from boxcar.shared.disk import checked_copy, mounts
from boxcar.shared.paths import ScratchPaths
from onbox.result import beside


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "code/configs").mkdir(parents=True)
    return tmp_path / "code"


def written(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(path.name))


def test_what_was_written_is_moved_to_the_same_place_whole(code: Path, tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff x")
    written(code / "configs/new", code / "data/x/one", code / odd)
    (code / "link").symlink_to("/nowhere")
    inode = (code / "data").stat().st_ino
    beside.move(code, ("configs/new", "data/", "link", odd, "gone meanwhile"), tmp_path / "to")
    assert [path.name for path in code.rglob("*")] == ["configs"]
    assert (tmp_path / "to/configs/new").read_text() == "new"
    assert (tmp_path / "to/data").stat().st_ino == inode, "one rename, however many files"
    assert (tmp_path / "to/link").readlink() == Path("/nowhere")
    assert (tmp_path / "to" / odd).exists()


def test_what_was_moved_before_is_not_overwritten(code: Path, tmp_path: Path) -> None:
    for text in ("first", "second", "third"):
        (code / "a.pt").write_text(text)
        beside.move(code, ("a.pt",), tmp_path / "to")
    texts = [(tmp_path / "to" / name).read_text() for name in ("a.pt", "a.pt.1", "a.pt.2")]
    assert texts == ["first", "second", "third"]


def failing(number: int) -> Callable[..., None]:
    def rename(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), str(source))

    return rename


def test_to_another_disk_it_is_not_copied_but_removed(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(code / "data/one")
    monkeypatch.setattr(Path, "rename", failing(errno.EXDEV))
    beside.move(code, ("data/",), tmp_path / "to")
    assert not (code / "data").exists()


def test_a_disk_that_is_mounted_there_is_left_alone_and_said(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(code / "data/one")
    monkeypatch.setattr(Path, "rename", failing(errno.EBUSY))
    monkeypatch.setattr(mounts, "points_below", lambda folder: [str(folder)])
    with pytest.raises(OSError, match=r"a disk is mounted there: unmount it: '.*/data'"):
        beside.move(code, ("data/",), tmp_path / "to")
    assert (code / "data/one").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may move any folder")
def test_a_read_only_folder_is_moved_too(code: Path, tmp_path: Path) -> None:
    written(code / "data/one")
    (code / "data").chmod(0o555)
    beside.move(code, ("data/",), tmp_path / "to")
    assert (tmp_path / "to/data/one").exists()


def test_room_is_made_by_removing_the_oldest_first_and_no_more_than_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = ScratchPaths(tmp_path, "r")
    for age_s, cell in enumerate(("new", "old", "oldest")):
        written(scratch.beside(cell) / "data")
        os.utime(scratch.beside(cell), (10_000 - age_s, 10_000 - age_s))
    assert beside.make_room(scratch, ("new", "old", "oldest", "none"), [1]) == []
    monkeypatch.setattr(
        checked_copy,
        "lack_of_room",
        lambda folder, sizes: "full" if scratch.beside("old").exists() else "",
    )
    assert beside.make_room(scratch, ("new", "old", "oldest"), [1]) == ["oldest", "old"]
    assert scratch.beside("new").exists()
