from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.shared.disk import digest, lock
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import append_lines

A, B = b"configs/a.yaml t\n", b"configs/b.yaml t\n"


@pytest.fixture
def run(tmp_path: Path) -> RunOnBox:
    return RunOnBox("tiny", str(tmp_path / "tier"), str(tmp_path))


@pytest.fixture
def queue(run: RunOnBox) -> Path:
    path = run.tier.queue("q1")
    path.parent.mkdir(parents=True)
    path.write_bytes(A + B)
    return path


def put(run: RunOnBox, data: bytes, seen: bytes = A + B) -> run_asks.Appended:
    read = (len(seen), digest.of_bytes(seen))
    return append_lines.answer(run_asks.CommentOut("q1", read, data), run)


def test_a_line_gets_its_mark_and_more_may_follow(run, queue):
    queue.chmod(0o664)
    after = b"# " + A + B + A.replace(b"a", b"c")
    assert put(run, after) == run_asks.Appended(len(after), digest.of_bytes(after))
    assert queue.read_bytes() == after
    assert queue.stat().st_mode & 0o777 == 0o664
    assert list(queue.parent.iterdir()) == [queue]


def test_done_twice_it_is_done_once(run, queue):
    put(run, b"#" + A + B)
    inode = queue.stat().st_ino
    put(run, b"#" + A + B)
    assert (queue.read_bytes(), queue.stat().st_ino) == (b"#" + A + B, inode)


def test_what_somebody_else_did_meanwhile_is_kept(run, queue):
    queue.write_bytes(A + B + B.replace(b"b", b"c"))
    with pytest.raises(InputError, match="was changed meanwhile"):
        put(run, b"#" + A + B)
    assert b"#" not in queue.read_bytes()


@pytest.mark.parametrize("data", [B, A, B + A, b"# x\n" + A + B, b"", b"#" + A + B[:-1]])
def test_nothing_but_a_mark_before_a_line_is_written(run, queue, data):
    with pytest.raises(InputError):
        put(run, data)
    assert queue.read_bytes() == A + B


def test_a_queue_that_vanished_does_not_come_back(run, queue):
    queue.unlink()
    with pytest.raises(FileNotFoundError):
        put(run, b"#" + A + B)
    assert not queue.exists()


def test_nothing_is_written_behind_a_link(run, queue):
    elsewhere = queue.rename(queue.with_name("elsewhere"))
    queue.symlink_to(elsewhere)
    with pytest.raises(InputError):
        put(run, b"#" + A + B)
    assert elsewhere.read_bytes() == A + B


def test_while_another_appends_nobody_comments_out(run, queue, monkeypatch):
    monkeypatch.setattr(append_lines, "LOCK_S", 0.1)
    fd = lock.try_hold(queue)
    assert fd is not None
    with pytest.raises(TemporaryError):
        put(run, b"#" + A + B)
    os.close(fd)


def test_who_waited_for_a_file_that_was_replaced_locks_the_one_that_is_there(queue, monkeypatch):
    """A lock on a file that is gone would keep nobody out."""
    real, is_first = lock.try_lock, [True]

    def replaced_meanwhile(fd: int) -> bool:
        if is_first.pop() if is_first else False:
            other = queue.with_name("other")
            other.write_bytes(A)
            other.replace(queue)
        return real(fd)

    monkeypatch.setattr(lock, "try_lock", replaced_meanwhile)
    with append_lines._locked(queue):
        assert not real(os.open(queue, os.O_RDWR))
