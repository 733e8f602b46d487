"""A file system without flock: locks of this machine alone take its place."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from boxcar.shared.disk import lock


@pytest.fixture(params=[errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def tier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A folder whose files refuse to be locked."""
    folder = tmp_path / "tier"
    folder.mkdir()
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(lock, "_MEMORY", memory)
    flock = fcntl.flock

    def refused(fd: int, how: int) -> None:
        if Path(f"/proc/self/fd/{fd}").readlink().is_relative_to(folder):
            raise OSError(request.param, os.strerror(request.param))
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", refused)
    return folder


def test_such_a_lock_excludes_others_here_and_is_free_with_its_holders_end(tier: Path) -> None:
    path = tier / "queue_1.lock"
    assert not lock.is_true(path)
    held = lock.try_hold(path)
    assert held is not None and lock.keep(held)
    assert lock.is_held(path) and lock.try_hold(path) is None
    os.close(held)
    assert not lock.is_held(path)


def test_it_goes_by_the_file_and_not_by_how_its_path_is_spelled(tier: Path) -> None:
    link = tier.with_name("link")
    link.symlink_to(tier)
    held = lock.try_hold(tier / "a.lock")
    assert held is not None and lock.is_held(link / "a.lock")
    os.close(held)


def test_where_flock_works_it_is_asked(tmp_path: Path) -> None:
    assert lock.is_true(tmp_path / "a.lock")
