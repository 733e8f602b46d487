from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.shared.disk import digest, sink


def test_the_disk_begins_before_the_end_and_every_byte_is_asked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "BEGIN_BYTES", 100)
    begun: list[tuple[int, int]] = []
    monkeypatch.setattr(digest, "forget_cached_pages", lambda _, *of: begun.append(of))
    data, fd = os.urandom(395), os.open(tmp_path / "x", os.O_WRONLY | os.O_CREAT)
    one = sink.Sink(fd)
    for begin, end in ((0, 30), (30, 350), (350, 395)):
        one.write(memoryview(data)[begin:end])
    os.close(fd)
    assert (tmp_path / "x").read_bytes() == data
    assert begun == [(0, 130), (130, 230), (230, 330)]


def test_a_write_that_the_system_cuts_short_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    fd = os.open(tmp_path / "x", os.O_WRONLY | os.O_CREAT)
    sink.Sink(fd).write(memoryview(bytes(range(100))))
    os.close(fd)
    assert (tmp_path / "x").read_bytes() == bytes(range(100))
