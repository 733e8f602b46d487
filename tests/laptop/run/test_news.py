from __future__ import annotations

from pathlib import Path

import pytest
from run_on_disk import RunOnDisk, agent_started, cell_started, make_run, queue_done

from boxcar.laptop.run.news import changes, news, warnings

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


EDITED = ("box.warning", {"what": "queue_edited", "text": "b was commented out"})
WAITS = ("box.warning", {"what": "waits_for_release", "text": "b waits", "cell": "b"})
REFUSED = {"cell": "b", "attempt": 1, "failure": "NOCFG", "reason": "no such file", "release": "r"}


def warned(run: RunOnDisk) -> list[str]:
    return [event.data["text"] for _, event in warnings(run.look())]


def test_a_comment_is_a_warning_until_the_agent_has_gone_on(run: RunOnDisk) -> None:
    run.say("queue_1", agent_started(), EDITED)
    assert warned(run) == ["b was commented out"]
    run.say("queue_1", ("cell.claimed", {"cell": "a"}), cell_started("a"))
    assert warned(run) == []
    run.say("queue_1", EDITED)
    assert warned(run) == ["b was commented out"]
    run.say("queue_1", queue_done())
    assert warned(run) == []


def test_a_line_that_waited_is_no_warning_once_its_cell_failed_for_it(run: RunOnDisk) -> None:
    run.say("queue_1", agent_started(), WAITS, cell_started("a"))
    assert warned(run) == ["b waits"]
    before = run.look()
    run.say("queue_1", ("cell.failed", REFUSED))
    assert warned(run) == []
    assert "b waits" not in " ".join(changes(before, run.look()))


def test_any_other_warning_stands(run: RunOnDisk) -> None:
    full = ("box.warning", {"what": "disk_full", "text": "4096 bytes are free"})
    lost = ("box.warning", {"what": "queue_edited", "text": "2 lines removed at the end"})
    run.say("queue_1", agent_started(), full, lost, cell_started("a"), queue_done())
    assert warned(run) == ["4096 bytes are free", "2 lines removed at the end"]


def test_a_cell_that_waits_for_another_is_a_warning_as_it_was_said_last_and_while_it_waits(
    run: RunOnDisk,
) -> None:
    def waits(text: str) -> tuple[str, dict[str, str]]:
        return "box.warning", {"what": "waits_for_cell", "text": text, "cell": "b"}

    run.say("queue_1", agent_started(), waits("b waits for a, where no agent is at work"))
    run.say("queue_1", waits("b waits for a"))
    assert warned(run) == ["b waits for a"]
    run.say("queue_1", cell_started("b"))
    assert warned(run) == []
    run.say("queue_1", waits("b waits for a again"), queue_done())
    assert warned(run) == [], "an end says itself which cells are blocked"
