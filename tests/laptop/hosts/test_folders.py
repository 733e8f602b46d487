from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from odd_files import NAMES, fill, found

from boxcar.laptop.hosts import by_rsync, folders
from boxcar.shared.disk import lock
from boxcar.shared.errors import BoxcarError, InputError, NoRoomError, TemporaryError

needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


def _fake_rsync(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program called rsync that ends as the script says: for codes that are hard to provoke."""
    program = folder / "bin" / "rsync"
    program.parent.mkdir()
    version = '[ "$1" = --version ] && exec echo "rsync  version 3.2.7  protocol version 31"'
    program.write_text(f"#!/bin/sh\n{version}\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@needs_rsync
def test_every_name_arrives_as_it_is(tmp_path: Path) -> None:
    source, destination = tmp_path / "-so urce:x", tmp_path / "new" / "-de st:y"
    fill(source)
    folders.fetch_folder(source, destination)
    assert found(destination) == {name: name for name in NAMES}


@needs_rsync
def test_of_a_list_only_those_names_are_taken(tmp_path: Path) -> None:
    source, destination = tmp_path / "source", tmp_path / "destination"
    fill(source, (*NAMES, "not wanted", "sub/nor this"))
    folders.fetch_folder(source, destination, files=NAMES)
    assert found(destination) == {name: name for name in NAMES}


@needs_rsync
def test_relative_paths_mean_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "box:1", ("x",))
    monkeypatch.chdir(tmp_path)
    folders.send_folder(Path("box:1"), Path("there"))
    assert found(tmp_path / "there") == {"x": "x"}


@needs_rsync
def test_it_works_where_the_current_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "source", ("x",))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    folders.fetch_folder(tmp_path / "source", tmp_path / "destination")
    assert found(tmp_path / "destination") == {"x": "x"}


@needs_rsync
def test_a_destination_behind_somebody_elses_link_is_the_persons_choice(tmp_path: Path) -> None:
    """rsync 3.5 refuses to follow a link of another user than root and its own."""
    fill(tmp_path / "source", ("x",))
    (tmp_path / "large disk").mkdir()
    (tmp_path / "results").symlink_to(tmp_path / "large disk")
    if os.geteuid() == 0:
        os.chown(tmp_path / "results", 1000, 1000, follow_symlinks=False)
    destination = tmp_path / "results" / "cells" / "a"
    folders.fetch_folder(tmp_path / "source", destination)
    assert found(tmp_path / "large disk" / "cells" / "a") == {"x": "x"}
    words = by_rsync.rsync_command(by_rsync.find_rsync(), tmp_path, destination, with_list=False)
    assert words[-1] == str(tmp_path / "large disk" / "cells" / "a")


@needs_rsync
def test_links_are_not_taken_and_nothing_is_deleted(tmp_path: Path) -> None:
    source, destination = tmp_path / "source", tmp_path / "destination"
    fill(source, ("x",))
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("key")
    (source / "file").symlink_to(tmp_path / "secret" / "key")
    (source / "folder").symlink_to(tmp_path / "secret")
    fill(destination, ("was here",))
    folders.fetch_folder(source, destination)
    assert found(destination) == {"x": "x", "was here": "was here"}


@needs_rsync
def test_rsync_says_nothing_on_stdout(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "source", ("x",))
    (tmp_path / "source" / "link").symlink_to("x")
    folders.fetch_folder(tmp_path / "source", tmp_path / "destination")
    assert capfd.readouterr() == ("", "")


@needs_rsync
def test_a_listed_file_that_is_missing_is_an_error_with_its_name(tmp_path: Path) -> None:
    fill(tmp_path / "source", ("x",))
    with pytest.raises(BoxcarError, match=r"(?s)code 23.*best\.pth"):
        folders.fetch_folder(tmp_path / "source", tmp_path / "there", files=["best.pth"])


def test_a_source_that_is_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BoxcarError, match="no such folder"):
        folders.fetch_folder(tmp_path / "nothing", tmp_path / "destination")


def test_a_missing_rsync_is_said_with_the_command_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="apt-get install rsync"):
        folders.fetch_folder(tmp_path, tmp_path / "destination")


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        ("echo 'write failed: No space left (28)' >&2; exit 11", NoRoomError, "Free some space"),
        ("echo 'some I/O error (5)' >&2; exit 11", BoxcarError, "some I/O error"),
        ("exit 12", TemporaryError, "broke off"),
        ("echo 'denied (13)' >&2; exit 23", BoxcarError, "denied"),
        ("exit 30", TemporaryError, "no data for too long"),
        ("exit 35", TemporaryError, "did not answer"),
        ("exit 255", TemporaryError, "connection"),
        ("kill -9 $$", TemporaryError, "signal 9"),
    ],
)
def test_each_exit_code_says_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    error: type[BoxcarError],
    words: str,
) -> None:
    _fake_rsync(tmp_path, monkeypatch, script)
    with pytest.raises(BoxcarError, match=words) as raised:
        folders.fetch_folder(tmp_path, tmp_path / "destination")
    assert type(raised.value) is error


def test_files_that_vanish_under_way_are_left_to_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_rsync(tmp_path, monkeypatch, "exit 24")
    folders.fetch_folder(tmp_path, tmp_path / "destination")


@needs_rsync
def test_a_full_disk_is_no_room(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)]
    if sys.platform != "linux" or subprocess.run(mount, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        (tmp_path / "source").mkdir()
        (tmp_path / "source" / "big").write_bytes(b"x" * 1_000_000)
        with pytest.raises(NoRoomError, match="Free some space"):
            folders.fetch_folder(tmp_path / "source", small / "there")
    finally:
        # Lazily: the rsync that wrote there may need a moment to leave.
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_rsync_keeps_the_lock_that_it_inherits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    _fake_rsync(tmp_path, monkeypatch, f"touch '{begun}'; cat '{tmp_path}/fifo'")
    os.mkfifo(tmp_path / "fifo")
    fd = lock.try_hold(tmp_path / "lock")
    assert fd is not None
    seen: list[bool] = []

    def on_wait() -> None:
        if begun.exists() and not seen:
            os.close(fd)  # as if this process had been killed
            seen.append(lock.is_held(tmp_path / "lock"))
            threading.Thread(target=(tmp_path / "fifo").write_bytes, args=(b"",)).start()

    folders.fetch_folder(tmp_path, tmp_path / "to", keep_open=[fd], on_wait=on_wait)
    assert seen == [True]
    assert not lock.is_held(tmp_path / "lock")


def test_an_interrupt_ends_rsync_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready, ended = tmp_path / "ready", tmp_path / "ended"
    script = f"trap 'touch {ended}; exit 20' TERM; touch {ready}; while :; do sleep 0.05; done"
    _fake_rsync(tmp_path, monkeypatch, script)

    def on_wait() -> None:
        if ready.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folders.fetch_folder(tmp_path, tmp_path / "destination", on_wait=on_wait)
    assert ended.exists()
