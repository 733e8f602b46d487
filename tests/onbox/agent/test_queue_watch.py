from __future__ import annotations

import time
from pathlib import Path

import pytest
from watchdog.observers.inotify import InotifyObserver
from watchdog.observers.inotify_c import InotifyConstants
from watchdog.observers.polling import PollingObserver

from boxcar.shared.disk import mounts
from boxcar.shared.disk.mounts import Mount
from onbox.agent import queue_watch
from onbox.agent.queue_watch import QueueWatch, is_remote

LOCAL, REMOTE = Mount("/", "ext4"), Mount("/fs", "nfs4")


def test_the_mount_under_a_folder_decides(monkeypatch, tmp_path):
    for mount, expected in ((REMOTE, True), (LOCAL, False), (None, False)):
        monkeypatch.setattr(mounts, "mount_of", lambda path, mount=mount: mount)
        assert is_remote(tmp_path) is expected


def test_inotify_on_a_local_disk_and_polling_on_a_network_file_system(monkeypatch, tmp_path):
    assert isinstance(QueueWatch([tmp_path])._observer, InotifyObserver)
    monkeypatch.setattr(mounts, "mount_of", lambda path: REMOTE)
    assert isinstance(QueueWatch([tmp_path])._observer, PollingObserver)


@pytest.mark.parametrize("kind", [LOCAL, REMOTE], ids=["ext4", "nfs4"])
@pytest.mark.parametrize("how", ["append", "rename", "create"])
def test_every_way_to_change_a_file_ends_the_wait(monkeypatch, tmp_path, kind, how):
    monkeypatch.setattr(mounts, "mount_of", lambda path: kind)
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


def test_the_kernel_tells_nothing_of_what_is_only_read(tmp_path):
    path = tmp_path / "queue.txt"
    path.write_text("a t\n")
    with QueueWatch([tmp_path]) as watch:
        (emitter,) = watch._observer.emitters
        mask = emitter.get_event_mask_from_filter()
        assert mask is not None
        assert not mask & (InotifyConstants.IN_OPEN | InotifyConstants.IN_CLOSE_NOWRITE)
