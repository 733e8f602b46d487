from __future__ import annotations

from pathlib import Path

import pytest
from run_on_disk import RunOnDisk, make_run

from boxcar.laptop.run.news import news

DEAD = {("queue_1", "agent dead", "run"): "queue_1: agent dead"}
DONE = {("queue_1", "done", "run"): "queue_1: done"}
FAILED = {("a", "failed", 2): "a: failed, attempt 2"}


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    return make_run(tmp_path)


def at(minute: int) -> str:
    return f"2026-10-01T08:{minute:02d}:00.000Z"


def said(
    run: RunOnDisk, standings: dict[tuple[object, ...], str], minute: int, every_s: float = 0.0
) -> list[str]:
    return news(run.project, standings, at(minute), every_s)


def memory(run: RunOnDisk) -> Path:
    return run.project.root / ".boxcar" / "watch" / "demo.json"


def test_what_stands_is_news_once(run: RunOnDisk) -> None:
    assert said(run, DEAD, 0) == ["queue_1: agent dead"]
    assert said(run, DEAD, 1) == []
    assert said(run, DEAD | FAILED, 2) == ["a: failed, attempt 2"]
    assert said(run, DONE | FAILED, 3) == ["queue_1: done"]
    assert said(run, DONE | FAILED, 4) == []


def test_what_was_over_and_comes_back_is_news_again(run: RunOnDisk) -> None:
    said(run, DONE | FAILED, 0)
    assert said(run, DONE, 1) == []
    assert said(run, DONE | FAILED, 2) == ["a: failed, attempt 2"]


def test_news_waits_until_the_time_has_come_and_is_not_lost(run: RunOnDisk) -> None:
    half_an_hour = 30 * 60.0
    assert said(run, DEAD, 0, half_an_hour)
    assert said(run, DEAD | FAILED, 29, half_an_hour) == []
    assert said(run, DEAD | FAILED, 30, half_an_hour) == ["a: failed, attempt 2"]


def test_a_look_without_news_does_not_put_off_the_next_report(run: RunOnDisk) -> None:
    half_an_hour = 30 * 60.0
    said(run, DEAD | FAILED, 0, half_an_hour)
    assert said(run, DEAD, 31, half_an_hour) == []
    assert said(run, DONE, 32, half_an_hour) == ["queue_1: done"]


def test_a_clock_that_was_set_back_does_not_keep_it_silent(run: RunOnDisk) -> None:
    said(run, DEAD, 50)
    assert said(run, DONE, 10, every_s=60.0) == ["queue_1: done"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"told": 3, "at": "x"}', '{"told": [], "at": 3}',
             '{"told": [], "at": "yesterday"}'],
)  # fmt: skip
def test_a_memory_that_cannot_be_read_makes_everything_news(run: RunOnDisk, text: str) -> None:
    said(run, DEAD, 0)
    memory(run).write_text(text)
    assert said(run, DEAD, 1, every_s=3600.0) == ["queue_1: agent dead"]
    assert said(run, DEAD, 2) == []


def test_nothing_to_say_leaves_nothing_behind(run: RunOnDisk) -> None:
    assert said(run, {}, 0) == []
    assert not memory(run).exists()
