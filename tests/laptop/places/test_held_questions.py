"""A box that holds a question until it has news; what it answers is real, and there is no ssh."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from far_boxes import FarRun, make_far_run
from run_on_disk import agent_started, cell_started
from waiting import LIMIT_S

from boxcar.laptop.places import ssh_site
from onbox.answers import wait


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FarRun]:
    """Nobody hangs up, and boxes look often. At the end they hold nothing any more."""
    is_over = threading.Event()
    monkeypatch.setattr(wait, "_has_hung_up", lambda within_s: is_over.wait(0.01))
    monkeypatch.setattr(ssh_site, "TOGETHER_S", 0.0)
    made = make_far_run(tmp_path, monkeypatch)
    yield made
    is_over.set()


def asked(run: FarRun, name: str) -> list[str]:
    return sorted(box for box, question in run.world.asked if question == name)


def test_news_end_the_wait_and_only_the_box_that_has_them_is_asked_again(run: FarRun) -> None:
    run.site.refresh()
    threading.Timer(0.2, run.agents.say, ["queue_1", agent_started(), cell_started("a")]).start()
    run.site.await_news(0.0, LIMIT_S)
    assert asked(run, "wait") == ["box-a", "box-b"]
    run.world.asked.clear()
    view = run.look()
    assert asked(run, "report") == ["box-a"]
    assert view.queue("queue_1").events


def test_a_box_holds_one_question_however_often_is_waited(run: FarRun) -> None:
    run.site.refresh()
    for _time in range(3):
        assert run.site.await_news(0.0, LIMIT_S, lambda seconds: True) is True
    assert asked(run, "wait") == ["box-a", "box-b"]
    run.world.asked.clear()
    run.site.refresh(is_exact=True)
    assert asked(run, "report") == ["box-a", "box-b"], "an exact look asks all"


def test_a_cut_line_ends_the_wait_and_the_look_says_that_the_box_is_silent(run: FarRun) -> None:
    run.site.refresh()
    run.world.cut.add("box-a")
    run.site.await_news(0.0, LIMIT_S)
    view = run.look()
    assert view.queue("queue_1").silent and not view.queue("queue_2").silent
    run.world.asked.clear()
    run.site.await_news(0.0, 0.1)
    assert "box-a" not in asked(run, "wait"), "a silent box is asked by looks, later and later"


def test_where_nobody_answers_there_are_looks(run: FarRun) -> None:
    run.world.cut |= {"box-a", "box-b"}
    run.site.refresh()
    pauses: list[float] = []
    assert run.site.await_news(7.0, 30.0, pauses.append) is None
    assert pauses == [7.0]


def test_a_person_who_leaves_waits_for_nobody(run: FarRun) -> None:
    run.site.refresh()
    assert run.site.await_news(7.0, LIMIT_S, lambda seconds: True) is True


def test_a_box_that_always_has_news_is_looked_at_now_and_then(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def always(box: str, told: dict[str, Any]) -> None:
        if "mark" in told:
            told["mark"] = "0a" * 32

    run.world.change = always
    monkeypatch.setattr(ssh_site, "TOGETHER_S", 0.5)
    run.site.refresh()
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        threading.Event().wait(seconds)

    run.site.await_news(7.0, 30.0, pause)
    assert sum(pauses) >= 0.4
