from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxcar.shared.disk import sink


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "x", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"1" * 10_000)
    yield fd
    os.close(fd)


def answer(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(*_: int) -> int:
        ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(sink, "_function", lambda: function)


def test_a_part_is_written_and_the_file_is_as_it_was(fd: int) -> None:
    sink.begin(fd, 0, 5_000)
    sink.wait(fd, 0, 5_000)
    assert os.pread(fd, 20_000, 0) == b"1" * 10_000


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EBADF])
def test_what_could_not_be_written_is_raised_because_no_fsync_tells_of_it_again(
    fd: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(number, monkeypatch)
    with pytest.raises(OSError, match=os.strerror(number)):
        sink.wait(fd, 0, 5_000)


def test_what_the_system_says_of_a_wrong_descriptor_is_raised() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        sink.begin(-1, 0, 1)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL])
def test_where_a_file_system_has_no_such_call_nobody_waits(
    fd: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(number, monkeypatch)
    sink.begin(fd, 0, 5_000)
    sink.wait(fd, 0, 5_000)


def test_where_a_system_has_no_such_call_nobody_waits(
    fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "_function", lambda: None)
    sink.wait(fd, 0, 5_000)


def test_a_pipe_has_no_parts() -> None:
    ends = os.pipe()
    sink.begin(ends[1], 0, 1)
    for end in ends:
        os.close(end)
