from __future__ import annotations

import time
from pathlib import Path

import pytest
from watchdog.observers.inotify import InotifyObserver
from watchdog.observers.polling import PollingObserver

from onbox.agent import queue_watch
from onbox.agent.queue_watch import QueueWatch, file_system, is_remote

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /root/autodl-fs rw - nfs4 10.0.0.1:/fs rw
31 22 0:41 / /mnt/with\\040space rw - fuse.juicefs j rw
32 30 0:42 / /root/autodl-fs/fast rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind", "remote"),
    [
        ("/root/autodl-fs/boxcar/run", "nfs4", True),
        ("/root/autodl-fs/fast/x", "tmpfs", False),
        ("/mnt/with space/x", "fuse.juicefs", True),
        ("/home/me", "ext4", False),
    ],
)
def test_the_file_system_under_a_path_decides(tmp_path, path, kind, remote):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert file_system(Path(path), mounts) == kind
    assert is_remote(kind) is remote


def test_where_nobody_tells_the_type_it_is_taken_for_local(tmp_path):
    assert file_system(tmp_path, tmp_path / "missing") == ""
    assert not is_remote("")


def test_inotify_on_a_local_disk_and_polling_on_a_network_file_system(monkeypatch, tmp_path):
    assert isinstance(QueueWatch([tmp_path])._observer, InotifyObserver)
    monkeypatch.setattr(queue_watch, "file_system", lambda path: "nfs4")
    assert isinstance(QueueWatch([tmp_path])._observer, PollingObserver)


@pytest.mark.parametrize("kind", ["ext4", "nfs4"])
@pytest.mark.parametrize("how", ["append", "rename", "create"])
def test_every_way_to_change_a_file_ends_the_wait(monkeypatch, tmp_path, kind, how):
    monkeypatch.setattr(queue_watch, "file_system", lambda path: kind)
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
    if how == "rename":
        path.with_name("new").write_text("b t\n")
        path.with_name("new").replace(path)
    else:
        with path.open("a") as file:
            file.write("b t\n")


def test_reading_the_file_does_not_wake_its_reader(tmp_path):
    path = tmp_path / "queue.txt"
    path.write_text("a t\n")
    with QueueWatch([tmp_path]) as watch:
        watch.wait(0.3)
        path.read_bytes()
        watch._changed.wait(0.5)
        assert not watch._changed.is_set()


def test_the_floor_ends_a_wait_that_no_event_ends(monkeypatch, tmp_path):
    monkeypatch.setattr(queue_watch, "FLOOR_S", 0.2)
    with QueueWatch([tmp_path]) as watch:
        watch.wait(3600.0)  # the time limit of the test is the assertion
