"""What a teardown does with news that nobody has taken yet."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_run import FinishedRun, make_run
from robot import YES, Robot

from boxcar.laptop.news import from_here
from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project.job import read_job
from boxcar.laptop.run.look import look_at_run
from boxcar.shared.channels.answer import key_of
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.journal import Journal
from boxcar.shared.wire import news_asks

JOB = "name: tiny\ncommand: t.py\nartifacts: [m]\nqueues: {q1.txt: box-a}\nlanguage: en\n"
NOTIFY = 'notify:\n  - feishu: {url: "env:FEISHU_URL"}\n'


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The boxes that were asked to deliver, which none of them can."""
    boxes: list[str] = []

    def ask(self: LocalSite, box: str, question: Any, **more: Any) -> Any:
        assert isinstance(question, news_asks.Deliver)
        boxes.append(box)
        raise TemporaryError("its receiver is away")

    monkeypatch.setattr(LocalSite, "ask", ask)
    return boxes


@pytest.fixture
def run(tmp_path: Path, robot: Robot) -> FinishedRun:
    """Of a queue that is done, whose last event its chat has not taken."""
    found = make_run(tmp_path)
    tier = found.site.tier
    for folder in tier.folders():
        folder.mkdir(parents=True, exist_ok=True)
    tier.journal("q1").unlink(missing_ok=True)
    log = Journal(tier.journal("q1"), {"run": "tiny", "queue": "q1", "box": "box-a"})
    log.append("agent.started", pid=1, release="r1", start_index=0)
    log.append("queue.done", verified=2, failed=0)
    log.append("agent.stopped", reason="the queue is done", by="done")
    sent = Delivered({key_of(robot.chat()): Cursor(1, channel="feishu")})
    tier.delivered("q1").write_bytes(codec.to_document(sent))
    path = tmp_path / "notify.yaml"
    path.write_text(JOB + NOTIFY)
    found.project = replace(found.project, job=read_job(path))
    return found


def ended(run: FinishedRun, robot: Robot, **environ: str) -> dict[str, int]:
    site = run.site
    queues = from_here.queues_with_news(site, look_at_run(site, "2026-11-22T22:41:07.123Z"), ())
    given = {"FEISHU_URL": robot.chat().url, "PATH": os.environ["PATH"]} | environ
    return from_here.deliver_news(site, queues, given)


def test_what_the_box_could_not_send_this_machine_sends(
    run: FinishedRun, robot: Robot, asked: list[str]
) -> None:
    robot.last = (200, {}, YES["feishu"])
    assert ended(run, robot) == {"q1": 0}
    assert asked == ["box-a"]
    [text] = robot.texts
    assert "q1 done: 2 cells verified" in text


def test_what_nobody_takes_is_counted_and_raises_nothing(
    run: FinishedRun, robot: Robot, asked: list[str]
) -> None:
    robot.last = (503, {}, b"")
    assert ended(run, robot) == {"q1": 1}
    assert ended(run, robot, FEISHU_URL="") == {"q1": 1}


def test_a_queue_of_a_box_that_has_ended_and_one_whose_news_arrived_are_left_alone(
    run: FinishedRun, robot: Robot
) -> None:
    view = look_at_run(run.site, "2026-11-22T22:41:07.123Z")
    assert from_here.queues_with_news(run.site, view, ("box-a",)) == []
    done = Delivered({key_of(robot.chat()): Cursor(3, channel="feishu")})
    run.site.tier.delivered("q1").write_bytes(codec.to_document(done))
    assert from_here.queues_with_news(run.site, view, ()) == []
    run.site.tier.delivered("q1").unlink()
    assert from_here.queues_with_news(run.site, view, ()) == []
