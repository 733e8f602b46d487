from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from onbox.answers.regular_file import open_plain, read_plain


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
