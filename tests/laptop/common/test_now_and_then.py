"""Lines of a progress in a log."""

from __future__ import annotations

import threading

import pytest

from boxcar.laptop.common import progress
from boxcar.laptop.common.progress import NowAndThen
from tests.waiting import until


def test_what_ends_soon_says_nothing() -> None:
    said: list[str] = []
    moving = NowAndThen(lambda: "a line", said.append)
    moving.start()
    moving.stop()
    assert said == []


def test_lines_come_until_it_stops_also_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_S", 0.01)
    monkeypatch.setattr(progress, "EVERY_S", 0.01)
    said: list[str] = []
    moving = NowAndThen(lambda: "a line", said.append)
    for _ in range(2):
        said.clear()
        moving.start()
        until(lambda: len(said) > 1, "lines")
        moving.stop()
        assert "progress" not in [thread.name for thread in threading.enumerate()]


def test_nothing_known_is_no_line_and_a_full_disk_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_S", 0.01)
    monkeypatch.setattr(progress, "EVERY_S", 0.01)
    lines, tried = iter([None, "one", "two"]), []

    def tell(line: str) -> None:
        tried.append(line)
        raise OSError(28, "No space left on device")

    moving = NowAndThen(lambda: next(lines, None), tell)
    moving.start()
    until(lambda: len(tried) == 2, "lines")
    moving.stop()
    assert tried == ["one", "two"]
