"""Who hears of a deadline: the run's chats, through its agent, or where none is at work without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from boxcar.shared.files import codec
from boxcar.shared.files.control import AgentStart
from boxcar.shared.files.own_end import OwnEnd
from boxcar.shared.news.wanted import BOX_STAYS, DEADLINE, needed_command
from onbox.deadline_news import DeadlineNews

AT = "2026-11-29T01:02:03.004Z"


def news_of(run: Any) -> DeadlineNews:
    """As on a box where the queue's agent was started by a launch."""
    scratch, plan = run.scratch(), run.plan
    where = (plan.run, "q1", "box-a", run.release.name, plan.durable_dir)
    start = AgentStart(*where, 0, ("setsid",), {}, AT)
    scratch.root.mkdir(parents=True, exist_ok=True)
    scratch.start("q1").write_bytes(codec.to_document(start))
    mark, record = scratch.deadline, scratch.root / "deadline-end.json"
    record.write_bytes(codec.to_document(OwnEnd("stop", AT, said="vast v0: 200 ok")))
    return DeadlineNews(mark, record, 21600, 604800, Path(scratch.data_dir))


def test_an_agent_that_is_at_work_says_it_once(make_run: Callable[..., Any]) -> None:
    run = make_run({"a": {"hold_at": 1}})
    news = news_of(run)
    run.start()
    run.wait_for_step("a")
    news.comes(600.0, is_cap=False)
    event = run.wait_for_warning(DEADLINE)
    assert event.data["text"].startswith("box-a stops itself at 20")
    assert "its deadline for that is 6h" in event.data["text"]
    assert f"ssh box-a rm {run.scratch().deadline}" in event.data["text"]
    assert event.data["is_over"] is False and event.data["needs"] == "status"
    until(lambda: not run.scratch().deadline_notice("q1").exists())
    news.is_off()
    until(lambda: len(run.warnings(DEADLINE)) == 2)
    assert run.warnings(DEADLINE)[1].startswith("box-a stays on")
    assert run.events("box.warning")[-1].data["is_over"] is True
    run.open_gate()


def test_without_an_agent_it_is_said_all_the_same(make_run: Callable[..., Any]) -> None:
    run = make_run({"a": {}})
    assert run.finish() == 0
    news = news_of(run)
    news.comes(600.0, is_cap=True)
    [text] = run.warnings(DEADLINE)
    assert "it has been on for 7d, the most that `up` named, whatever runs" in text
    news.is_still_here()
    news.is_still_here()
    [text] = run.warnings(BOX_STAYS)
    assert "could not stop itself and may still bill" in text and "vast v0: 200 ok" in text
    assert not run.scratch().deadline_notice("q1").exists()


def test_a_box_where_nothing_was_launched_has_nobody_to_tell(tmp_path: Path) -> None:
    root = tmp_path / "boxcar" / "tiny"
    root.mkdir(parents=True)
    news = DeadlineNews(root / "deadline", root / "deadline-end.json", 60, 600, tmp_path)
    news.comes(600.0, is_cap=False)
    news.is_off()
    news.is_still_here()
    assert [path.name for path in root.iterdir()] == []


def test_a_notice_of_the_time_before_a_restart_is_said_by_nobody(
    make_run: Callable[..., Any],
) -> None:
    run = make_run({"a": {}})
    news_of(run)
    old = run.scratch().deadline_notice("q1")
    old.write_text("{}")
    news_of(run)
    assert not old.exists()


@pytest.mark.parametrize(("what", "command"), [(DEADLINE, "status"), (BOX_STAYS, "down")])
def test_it_says_what_to_type(what: str, command: str) -> None:
    assert needed_command("box.warning", {"what": what, "is_over": False}) == command
