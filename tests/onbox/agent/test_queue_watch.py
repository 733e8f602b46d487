from __future__ import annotations

import errno
import os
import select
import signal
import tempfile
import threading
import time
from pathlib import Path

import pytest

from boxcar.shared.disk import mounts
from boxcar.shared.disk.mounts import Mount
from onbox.agent import queue_watch
from onbox.agent.queue_watch import QueueWatch, is_remote

LOCAL, REMOTE = Mount("/", "ext4"), Mount("/fs", "nfs4")


def test_the_mount_under_a_folder_decides(monkeypatch, tmp_path):
    for mount, expected in ((REMOTE, True), (LOCAL, False), (None, False)):
        monkeypatch.setattr(mounts, "mount_of", lambda path, mount=mount: mount)
        assert is_remote(tmp_path) is expected


def asks_the_kernel(folder: Path) -> bool:
    with QueueWatch([folder]) as watch:
        return watch._told is not None


def test_the_kernel_is_asked_on_a_local_disk_and_the_agent_looks_on_a_network_file_system(
    monkeypatch, tmp_path
):
    assert asks_the_kernel(tmp_path)
    monkeypatch.setattr(mounts, "mount_of", lambda path: REMOTE)
    assert not asks_the_kernel(tmp_path)
    monkeypatch.setattr(queue_watch, "FLOOR_S", 3600.0)
    with QueueWatch([tmp_path]) as watch:
        watch.wait(3600.0)  # the time limit of the test is the assertion


@pytest.mark.parametrize("how", ["append", "rename", "create", "move", "remove"])
def test_every_way_to_change_a_file_ends_the_wait(monkeypatch, tmp_path, how):
    monkeypatch.setattr(queue_watch, "FLOOR_S", 120.0)
    path = tmp_path / "queue.txt"
    if how != "create":
        path.write_text("a t\n")
    with QueueWatch([tmp_path]) as watch:
        _change(path, how)
        began = time.monotonic()
        watch.wait(120.0)
        # Far below the floor: only an event can have ended it.
        assert time.monotonic() - began < 60


def _change(path: Path, how: str) -> None:
    if how == "move":
        with tempfile.NamedTemporaryFile(dir=path.parent.parent, delete=False) as file:
            Path(file.name).replace(path)
        return
    if how == "remove":
        path.unlink()
        return
    if how == "rename":
        path.with_name("new").write_text("b t\n")
        path.with_name("new").replace(path)
    else:
        with path.open("a") as file:
            file.write("b t\n")


def is_told(watch: QueueWatch) -> bool:
    return watch._told is not None and bool(select.select([watch._told], [], [], 0)[0])


def test_reading_the_file_does_not_wake_its_reader(tmp_path):
    path = tmp_path / "queue.txt"
    path.write_text("a t\n")
    with QueueWatch([tmp_path]) as watch:
        # The kernel tells before the call returns.
        path.read_bytes()
        assert not is_told(watch)
        path.write_text("b t\n")
        assert is_told(watch)
        watch.wait(120.0)
        assert not is_told(watch), "else each wait would end at once"


def test_the_floor_ends_a_wait_that_no_event_ends(monkeypatch, tmp_path):
    monkeypatch.setattr(queue_watch, "FLOOR_S", 0.2)
    with QueueWatch([tmp_path]) as watch:
        watch.wait(3600.0)  # the time limit of the test is the assertion


@pytest.mark.parametrize("times", [1, 100_000])
def test_who_is_woken_before_it_waits_waits_once_less(monkeypatch, tmp_path, times):
    monkeypatch.setattr(queue_watch, "FLOOR_S", 0.2)
    with QueueWatch([tmp_path]) as watch:
        for _ in range(times):
            watch.wake()
        assert select.select([watch._woken], [], [], 0)[0]
        watch.wait(3600.0)
        assert times > 1 or not select.select([watch._woken], [], [], 0)[0]


def test_a_signal_ends_a_wait(monkeypatch, tmp_path):
    monkeypatch.setattr(queue_watch, "FLOOR_S", 3600.0)
    with QueueWatch([tmp_path]) as watch:
        before = signal.signal(signal.SIGUSR1, lambda number, frame: watch.wake())
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        watch.wait(3600.0)  # the time limit of the test is the assertion
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_that_comes_after_its_end_writes_nowhere(tmp_path):
    path = tmp_path / "another"
    with path.open("w") as file:
        with QueueWatch([tmp_path]) as watch:
            fds = (watch._woken, watch._wakes)
        for fd in fds:  # which are given out again
            os.dup2(file.fileno(), fd)
        watch.wake()
        for fd in fds:
            os.close(fd)
    assert path.read_bytes() == b""


@pytest.mark.parametrize("kind", [LOCAL, REMOTE], ids=["ext4", "nfs4"])
def test_a_time_that_has_passed_is_no_wait(monkeypatch, tmp_path, kind):
    monkeypatch.setattr(mounts, "mount_of", lambda path: kind)
    with QueueWatch([tmp_path]) as watch:
        watch.wait(-0.001)


def test_where_no_watch_is_left_the_folders_the_agent_looks(monkeypatch, tmp_path):
    def used_up(*words: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    for call in ("opened", "add"):
        with monkeypatch.context() as patched:
            patched.setattr(queue_watch, call, used_up)
            open_before = set(Path("/proc/self/fd").iterdir())
            assert not asks_the_kernel(tmp_path)
            assert set(Path("/proc/self/fd").iterdir()) == open_before
