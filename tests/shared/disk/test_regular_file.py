from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

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


def test_a_file_is_read(folder: Path) -> None:
    (folder / "a").write_bytes(b"here")
    assert read_plain(folder, "a") == b"here"


@pytest.mark.parametrize("name", ["none", "none/file", "file/below"])
def test_what_is_not_there_is_none(folder: Path, name: str) -> None:
    (folder / "file").touch()
    assert read_plain(folder, name) is None


def test_a_link_shows_nobody_another_file(folder: Path) -> None:
    (folder / "file").symlink_to("../secret/file")
    (folder / "step").symlink_to("../secret")
    (folder / "dead").symlink_to("nowhere")
    assert [read_plain(folder, name) for name in ("file", "step/file", "dead")] == [None] * 3


def test_what_is_no_file_keeps_nobody_waiting(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder)  # the path of a socket has to be short
    with socket.socket(socket.AF_UNIX) as here:
        here.bind("socket")
        names = ("pipe", "below", "socket")
        assert [open_plain(folder, name) for name in names] == [None] * 3


# --- what a cell left


def test_a_link_that_ends_inside_is_followed_also_by_a_folder(folder: Path) -> None:
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "step_2").write_bytes(b"two")
    (folder / "best").symlink_to("checkpoints/step_2")
    (folder / "newest").symlink_to(folder / "best")
    (folder / "art").symlink_to("checkpoints")
    assert [read_left(folder, name, 9) for name in ("best", "newest", "art/step_2")] == [b"two"] * 3
    assert resolve_left(folder, "newest") == folder / "checkpoints" / "step_2"


def test_a_folder_that_is_itself_reached_through_a_link_is_the_folder(
    folder: Path, tmp_path: Path
) -> None:
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
def test_a_link_that_does_not_end_inside_is_told_apart(
    folder: Path, target: str, what: str
) -> None:
    (folder / "a").symlink_to(target)
    with pytest.raises(StrangeFileError, match=what) as raised:
        open_left(folder, "a")
    assert raised.value.filename == str(folder / "a")


def test_a_folder_that_leads_out_is_no_way_to_a_file(folder: Path) -> None:
    (folder / "art").symlink_to("../secret")
    with pytest.raises(StrangeFileError, match="leads out"):
        open_left(folder, "art/file")


def test_nothing_under_this_name_is_not_strange(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_left(folder, "none")


def test_what_a_cell_left_and_is_no_file_keeps_nobody_waiting(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_what_is_read_whole_has_a_bound(folder: Path) -> None:
    (folder / "a").write_bytes(b"12345")
    assert read_at(folder / "a", 5) == b"12345"
    with pytest.raises(StrangeFileError, match="larger than 4 bytes"):
        read_left(folder, "a", 4)
