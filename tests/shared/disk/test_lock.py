from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import LIMIT_S

from boxcar.shared.disk import lock

HOLD = """
import sys
from pathlib import Path
from boxcar.shared.disk import lock
fd = lock.try_hold(Path(sys.argv[1]))
print("held" if fd is not None else "refused", flush=True)
sys.stdin.read()
"""

ASK = """
import sys
from pathlib import Path
from boxcar.shared.disk import lock
print("asking", flush=True)
while True:
    lock.is_held(Path(sys.argv[1]))
"""


@contextmanager
def process(code: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A real process that has said its first word; it is killed in the end."""
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin and child.stdout
    try:
        yield child
    finally:
        child.kill()
        child.wait(LIMIT_S)
        child.stdin.close()
        child.stdout.close()


def first_word(child: subprocess.Popen[str]) -> str:
    assert child.stdout
    return child.stdout.readline().strip()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue_1.lock"


def test_a_lock_is_held_by_one_until_it_is_let_go(path):
    fd = lock.try_hold(path)
    assert fd is not None
    assert lock.try_hold(path) is None
    assert lock.is_held(path)
    os.close(fd)
    assert not lock.is_held(path)
    again = lock.try_hold(path)
    assert again is not None
    os.close(again)


def test_a_lock_that_nobody_ever_took_is_free(path):
    assert not lock.is_held(path)
    assert not path.exists()


def test_a_refused_lock_leaves_no_open_file(path):
    fd = lock.try_hold(path)
    assert fd is not None
    before = lowest_free_descriptor(path)
    for _ in range(20):
        assert lock.try_hold(path) is None
        assert lock.is_held(path)
    assert lowest_free_descriptor(path) == before
    os.close(fd)


def lowest_free_descriptor(path: Path) -> int:
    fd = os.open(path.parent, os.O_RDONLY)
    os.close(fd)
    return fd


def test_another_process_is_refused(path):
    fd = lock.try_hold(path)
    assert fd is not None
    with process(HOLD, path) as child:
        assert first_word(child) == "refused"
    os.close(fd)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_holder_that_is_killed_lets_go(path, number):
    with process(HOLD, path) as child:
        assert first_word(child) == "held"
        assert lock.is_held(path)
        child.send_signal(number)
        child.wait(LIMIT_S)
        assert not lock.is_held(path)
        fd = lock.try_hold(path)
    assert fd is not None
    os.close(fd)


def test_who_inherits_the_descriptor_keeps_the_lock_after_its_parent_has_let_go(path):
    fd = lock.try_hold(path)
    assert fd is not None
    child = subprocess.Popen(["sleep", "60"], pass_fds=[fd])
    try:
        os.close(fd)
        assert lock.is_held(path)
        assert lock.try_hold(path) is None
    finally:
        child.kill()
        child.wait(LIMIT_S)
    assert not lock.is_held(path)


def test_a_child_that_inherits_nothing_does_not_keep_the_lock(path):
    fd = lock.try_hold(path)
    assert fd is not None
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        os.close(fd)
        assert not lock.is_held(path)
    finally:
        child.kill()
        child.wait(LIMIT_S)


def test_who_has_the_descriptor_may_lock_it_again(path):
    fd = lock.try_hold(path)
    assert fd is not None
    assert lock.try_lock(fd)
    os.close(fd)


def test_asking_does_not_take_the_lock_from_its_holder(path):
    fd = lock.try_hold(path)
    assert fd is not None
    with process(ASK, path) as asker:
        assert first_word(asker) == "asking"
        for _ in range(200):
            assert lock.is_held(path)
            assert lock.try_hold(path) is None
    os.close(fd)


def test_asking_never_makes_somebody_believe_that_the_lock_is_kept(path):
    # The laptop asks while an agent starts: a refusal here would be an agent that gives up.
    with process(ASK, path) as asker:
        assert first_word(asker) == "asking"
        for _ in range(300):
            fd = lock.hold(path, patience_s=30)
            assert fd is not None
            os.close(fd)


def test_patience_ends_where_somebody_keeps_the_lock(path):
    fd = lock.try_hold(path)
    assert fd is not None
    assert lock.hold(path, patience_s=0.1) is None
    os.close(fd)


def test_patience_outlasts_who_lets_go_in_time(path):
    with process(HOLD, path) as child:
        assert first_word(child) == "held"
        threading.Timer(0.1, child.kill).start()
        fd = lock.hold(path, patience_s=30)
    assert fd is not None
    os.close(fd)


def test_many_who_try_at_once_never_hold_it_together(path):
    holders, most, wins = 0, 0, 0
    guard = threading.Lock()

    def try_often() -> None:
        nonlocal holders, most, wins
        for _ in range(50):
            fd = lock.try_hold(path)
            if fd is None:
                continue
            with guard:
                holders, wins = holders + 1, wins + 1
                most = max(most, holders)
            with guard:
                holders -= 1
            os.close(fd)

    threads = [threading.Thread(target=try_often) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert most == 1
    assert wins


def test_the_lock_file_stays_and_keeps_what_it_holds(path):
    path.write_bytes(b"the log of a cell is its lock too\n")
    fd = lock.try_hold(path)
    assert fd is not None
    os.close(fd)
    assert path.read_bytes() == b"the log of a cell is its lock too\n"


def let_go_of(fd: int) -> None:
    """What a file server does to a host that was out of reach: the descriptor stays."""
    fcntl.flock(fd, fcntl.LOCK_UN)


def test_a_lock_that_the_server_took_is_taken_back_where_it_is_free(path):
    fd = lock.try_hold(path)
    assert fd is not None and lock.keep(fd)
    let_go_of(fd)
    assert not lock.is_held(path)
    assert lock.keep(fd)
    assert lock.is_held(path)
    os.close(fd)


def test_a_lock_that_the_server_gave_to_another_is_not_ours_any_more(path):
    fd = lock.try_hold(path)
    assert fd is not None
    let_go_of(fd)
    with process(HOLD, path) as child:
        assert first_word(child) == "held"
        assert not lock.keep(fd, patience_s=0.1)
    os.close(fd)


# --- a file system without flock: locks of this machine take its place


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


def test_such_a_lock_excludes_others_here_and_is_free_with_its_holders_end(tier):
    path = tier / "queue_1.lock"
    assert not lock.is_true(path)
    held = lock.try_hold(path)
    assert held is not None and lock.keep(held)
    assert lock.is_held(path) and lock.try_hold(path) is None
    os.close(held)
    assert not lock.is_held(path)


def test_it_goes_by_the_file_and_not_by_how_its_path_is_spelled(tier):
    link = tier.with_name("link")
    link.symlink_to(tier)
    held = lock.try_hold(tier / "a.lock")
    assert held is not None and lock.is_held(link / "a.lock")
    os.close(held)


def test_where_flock_works_it_is_asked(tmp_path):
    assert lock.is_true(tmp_path / "a.lock")
