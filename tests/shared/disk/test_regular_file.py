from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from boxcar.shared.disk import mounts, regular_file
from boxcar.shared.disk.regular_file import (
    StrangeFileError,
    open_at,
    open_left,
    open_plain,
    read_at,
    read_left,
    read_plain,
    resolve_left,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_bytes(b"not yours")
    return made


def test_a_file_is_read(folder):
    (folder / "a").write_bytes(b"here")
    assert read_plain(folder, "a") == b"here"


@pytest.mark.parametrize("name", ["none", "none/file", "file/below"])
def test_what_is_not_there_is_none(folder, name):
    (folder / "file").touch()
    assert read_plain(folder, name) is None


def test_a_link_shows_nobody_another_file(folder):
    (folder / "file").symlink_to("../secret/file")
    (folder / "step").symlink_to("../secret")
    (folder / "dead").symlink_to("nowhere")
    assert [read_plain(folder, name) for name in ("file", "step/file", "dead")] == [None] * 3


def test_what_is_no_file_keeps_nobody_waiting(folder, monkeypatch):
    os.mkfifo(folder / "pipe")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder)  # the path of a socket has to be short
    with socket.socket(socket.AF_UNIX) as here:
        here.bind("socket")
        names = ("pipe", "below", "socket")
        assert [open_plain(folder, name) for name in names] == [None] * 3


# --- what a cell left


def test_a_link_that_ends_inside_is_followed_also_by_a_folder(folder):
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "step_2").write_bytes(b"two")
    (folder / "best").symlink_to("checkpoints/step_2")
    (folder / "newest").symlink_to(folder / "best")
    (folder / "art").symlink_to("checkpoints")
    assert [read_left(folder, name, 9) for name in ("best", "newest", "art/step_2")] == [b"two"] * 3
    assert resolve_left(folder, "newest") == folder / "checkpoints" / "step_2"


def test_a_folder_that_is_itself_reached_through_a_link_is_the_folder(folder, tmp_path):
    (folder / "a").write_bytes(b"here")
    (tmp_path / "link").symlink_to("folder")
    assert read_left(tmp_path / "link", "a", 9) == b"here"


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("../secret/file", "leads out"),
        ("/etc/passwd", "leads out"),
        ("nowhere", "to nothing"),
        ("a", "circle"),
    ],
)
def test_a_link_that_does_not_end_inside_is_told_apart(folder, target, what):
    (folder / "a").symlink_to(target)
    with pytest.raises(StrangeFileError, match=what) as raised:
        open_left(folder, "a")
    assert raised.value.filename == str(folder / "a")


def test_a_folder_that_leads_out_is_no_way_to_a_file(folder):
    (folder / "art").symlink_to("../secret")
    with pytest.raises(StrangeFileError, match="leads out"):
        open_left(folder, "art/file")


def test_nothing_under_this_name_is_not_strange(folder):
    with pytest.raises(FileNotFoundError):
        open_left(folder, "none")


def test_what_a_cell_left_and_is_no_file_keeps_nobody_waiting(folder, monkeypatch):
    os.mkfifo(folder / "pipe")
    (folder / "below").mkdir()
    (folder / "link").symlink_to("pipe")
    monkeypatch.chdir(folder)  # the path of a socket has to be short
    with socket.socket(socket.AF_UNIX) as here:
        here.bind("socket")
        with pytest.raises(IsADirectoryError):
            open_left(folder, "below")
        for name in ("pipe", "link", "socket"):
            with pytest.raises(StrangeFileError):
                open_left(folder, name)
        for name in ("pipe", "link", "socket"):
            with pytest.raises(StrangeFileError):
                open_at(folder / name)


def test_what_is_read_whole_has_a_bound(folder):
    (folder / "a").write_bytes(b"12345")
    assert read_at(folder / "a", 5) == b"12345"
    with pytest.raises(StrangeFileError, match="larger than 4 bytes"):
        read_left(folder, "a", 4)


# --- what is removed


def test_a_link_is_removed_and_what_it_leads_to_stays(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/a").touch()
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone/inner").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    for name in ("gone", "link", "never there"):
        regular_file.remove(tmp_path / name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "kept"]


def test_a_folder_with_a_disk_mounted_in_it_is_not_emptied(tmp_path, monkeypatch):
    (tmp_path / "data/s3").mkdir(parents=True)
    (tmp_path / "data/s3/mine").touch()
    monkeypatch.setattr(mounts, "points_below", lambda folder: [f"{folder}/s3"])
    with pytest.raises(OSError, match=r"a disk is mounted there: unmount it: '.*data/s3'"):
        regular_file.remove(tmp_path / "data")
    assert (tmp_path / "data/s3/mine").exists()


def test_folders_that_a_script_made_read_only_are_removed_all_the_same(tmp_path):
    deep = tmp_path / "top/middle/deep"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    for folder in (deep, deep.parent, tmp_path / "top"):
        folder.chmod(0o555)
    regular_file.open_up(tmp_path / "top")
    assert all(path.stat().st_mode & 0o700 == 0o700 for path in (deep, deep.parent))
    regular_file.remove(tmp_path / "top")
    assert not (tmp_path / "top").exists()


# --- stamps


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"as it was")
    return path


def test_a_file_of_the_same_size_and_time_has_another_stamp_once_it_was_written_to(file):
    before, times = (
        regular_file.stamp_of_link(file),
        (file.stat().st_atime_ns, file.stat().st_mtime_ns),
    )
    time.sleep(0.02)  # a step of the clock that the disk takes its times from
    file.write_bytes(b"As it was")
    os.utime(file, ns=times)
    assert regular_file.stamp_of_link(file) != before == before[:]


def test_a_file_is_old_once_no_disk_gives_a_writer_the_same_time(file):
    found = regular_file.stamp_of_link(file)
    assert found
    now_ns = max(found[2], found[3])
    assert not regular_file.is_old(found, now_ns + 2_000_000_000)
    assert regular_file.is_old(found, now_ns + 4_000_000_000)
