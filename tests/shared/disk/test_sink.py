from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.shared.disk import digest, sink


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """What the disk is told, with the first byte and the last but one."""
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(sink, "PART_BYTES", 100)
    monkeypatch.setattr(
        sink, "begin", lambda _, start, size: told.append(("begin", start, start + size))
    )
    monkeypatch.setattr(
        sink, "wait", lambda _, start, size: told.append(("wait", start, start + size))
    )
    monkeypatch.setattr(
        digest, "forget_cached_pages", lambda _, start, end: told.append(("forget", start, end))
    )
    return told


def test_the_disk_is_busy_with_a_part_while_the_one_before_is_waited_for(
    tmp_path: Path, seen: list[tuple[str, int, int]]
) -> None:
    data, fd = os.urandom(395), os.open(tmp_path / "x", os.O_WRONLY | os.O_CREAT)
    one = sink.Sink(fd, leaves_room=True)
    for start, end in ((0, 30), (30, 350), (350, 395)):
        one.write(memoryview(data)[start:end])
    os.close(fd)
    assert (tmp_path / "x").read_bytes() == data
    assert seen == [
        ("begin", 0, 130),
        ("begin", 130, 230), ("wait", 0, 130), ("forget", 0, 130),
        ("begin", 230, 330), ("wait", 130, 230), ("forget", 130, 230),
    ]  # fmt: skip


def test_a_save_that_a_training_waits_for_begins_each_part_and_waits_for_none(
    tmp_path: Path, seen: list[tuple[str, int, int]]
) -> None:
    with (tmp_path / "x").open("wb") as file:
        sink.Sink(file.fileno()).write(memoryview(bytes(350)))
    assert seen == [("begin", 0, 100), ("begin", 100, 200), ("begin", 200, 300)]


def test_what_the_disk_could_not_write_of_an_earlier_part_is_raised(
    tmp_path: Path, seen: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(sink, "wait", broken)
    with (tmp_path / "x").open("wb") as file, pytest.raises(OSError, match="Input/output"):
        sink.Sink(file.fileno(), leaves_room=True).write(memoryview(bytes(200)))


def test_a_write_that_the_system_cuts_short_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    fd = os.open(tmp_path / "x", os.O_WRONLY | os.O_CREAT)
    sink.Sink(fd).write(memoryview(bytes(range(100))))
    os.close(fd)
    assert (tmp_path / "x").read_bytes() == bytes(range(100))
