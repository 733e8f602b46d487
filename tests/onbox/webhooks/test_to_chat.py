"""News to chats, against real servers on 127.0.0.1 that say yes, no, later, or nothing at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from robot import HANG, NO, RESET, TOKEN, YES, Clock, Robot
from waiting import LIMIT_S, until

from boxcar.shared.channels import known
from boxcar.shared.channels.answer import Answer, Endpoint, Later, Refused, Taken, key_of
from boxcar.shared.disk import lock
from boxcar.shared.files import delivered
from boxcar.shared.files.journal import Journal
from boxcar.shared.news.wanted import REFUSALS
from onbox.webhooks import post
from onbox.webhooks.deliver import Deliverer, flush

pytestmark = pytest.mark.usefixtures("no_proxy")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    import os

    held = lock.try_hold(tmp_path / "q1.lock")
    assert held is not None
    yield Journal(
        tmp_path / "q1.jsonl", {"run": "r", "queue": "q1", "box": "box-a"}, lambda: lock.keep(held)
    )
    os.close(held)


def chat_answer(chat: Endpoint, news: str, clock: Any = time.time) -> Answer:
    return post.post_once(chat, news, clock).answer


def fail(journal: Journal, cell: str, why: str = "CUDA out of memory") -> Any:
    about = {"attempt": 1, "failure": "M2", "reason": why, "release": "d" * 64}
    return journal.append("cell.failed", cell=cell, **about, is_final=True)


def sender(
    journal: Journal, robot: Robot, tmp_path: Path, channel: str = "feishu"
) -> tuple[Deliverer, Clock]:
    clock = Clock()
    made = Deliverer(
        journal.path,
        tmp_path / "delivered.json",
        (),
        [robot.chat(channel)],
        wait=clock.wait,
        clock=clock,
    )
    made.start()
    return made, clock


def cursor(tmp_path: Path, robot: Robot, channel: str = "feishu") -> delivered.Cursor:
    found = delivered.read_delivered(tmp_path / "delivered.json").endpoints
    return found.get(key_of(robot.chat(channel)), delivered.Cursor())


NOT_TAKEN: list[Any] = [
    (200, {}, NO),
    (200, {}, b"<html>Sign in</html>"),
    (302, {"location": "/other"}, b""),
    (307, {"location": "http://127.0.0.1:1/"}, b""),
    (429, {"retry-after": "1"}, b'{"retry_after": 1}'),
    (500, {}, b""),
    (404, {}, b"no such robot"),
    RESET,
]


@pytest.mark.parametrize("channel", known.NAMES)
@pytest.mark.parametrize("step", NOT_TAKEN, ids=str)
def test_nothing_is_taken_that_the_service_did_not_take(channel, step, robot):
    robot.script = [step]
    robot.last = (200, {}, YES[channel])
    assert isinstance(chat_answer(robot.chat(channel), "text"), (Later, Refused))
    assert chat_answer(robot.chat(channel), "text") == Taken()
    assert len(robot.bodies) == 2  # no redirect was followed


def test_a_robot_that_hangs_or_drips_is_given_up(robot, monkeypatch):
    monkeypatch.setattr(post, "READ_S", 0.1)
    robot.script = [HANG]
    found = chat_answer(robot.chat(), "text")
    assert isinstance(found, Later)
    assert "Timeout" in found.why


def test_a_closed_port_and_a_wrong_tls_took_nothing(robot):
    port = robot.server_address[1]
    for url in ("http://127.0.0.1:1/" + TOKEN, f"https://127.0.0.1:{port}/{TOKEN}"):
        found = chat_answer(Endpoint("feishu", url), "text")
        assert isinstance(found, Later)
        assert TOKEN not in found.why


def test_a_clock_that_is_off_is_said_beside_the_refusal(robot):
    robot.script = [(200, {}, b'{"code": 19021, "msg": "sign match fail"}')]
    found = chat_answer(robot.chat(), "text", lambda: time.time() + 3660)
    assert isinstance(found, Refused)
    assert "(the clock here is 61 min ahead of the service's)" in found.why


def test_a_refusal_in_the_body_is_not_delivered_and_is_told_once_without_the_url(
    robot, journal, tmp_path
):
    robot.script = [(200, {}, b'{"code": 19001, "msg": "no robot %s"}' % TOKEN.encode())] * 2
    deliverer, _ = sender(journal, robot, tmp_path)
    failed = fail(journal, "a")
    deliverer.wake()
    until(lambda: cursor(tmp_path, robot).seq == failed.seq)
    deliverer.close(0)
    assert len(robot.bodies) == 3
    [told] = deliverer.refusals()
    assert told.startswith("feishu refused a message: answered 200:")
    assert TOKEN not in told + repr(deliverer.status())


def test_a_refusal_is_on_the_disk_until_the_service_takes_a_message_again(robot, journal, tmp_path):
    robot.last = (200, {}, NO)
    deliverer = Deliverer(journal.path, tmp_path / "delivered.json", (), [robot.chat()])
    deliverer.start()
    fail(journal, "a")
    deliverer.wake()
    until(lambda: cursor(tmp_path, robot).refused is not None)
    refused = cursor(tmp_path, robot).refused
    assert refused is not None
    assert "nobody here" in refused and TOKEN not in refused
    robot.last = (200, {}, YES["feishu"])
    until(lambda: cursor(tmp_path, robot).seq == 1)
    assert cursor(tmp_path, robot).refused is None
    deliverer.close(0)


def test_one_message_that_is_refused_for_ever_does_not_hold_up_the_next(robot, journal, tmp_path):
    robot.script = [(200, {}, NO)] * REFUSALS
    deliverer, _ = sender(journal, robot, tmp_path)
    fail(journal, "bad")
    last = fail(journal, "good")
    deliverer.wake()
    until(lambda: cursor(tmp_path, robot).seq == last.seq)
    deliverer.close(0)
    assert "good failed" in robot.texts[-1]
    assert "bad" not in robot.texts[-1]
    assert len(robot.bodies) == REFUSALS + 1
    left = cursor(tmp_path, robot)
    assert left.set_aside == 1
    assert left.set_aside_why is not None and "nobody here" in left.set_aside_why
    assert left.refused is None


def test_a_flood_becomes_one_message_in_order_and_the_rest_is_counted(robot, journal, tmp_path):
    deliverer, _ = sender(journal, robot, tmp_path)
    for number in range(30):
        journal.append("cell.started", cell=f"c{number}", attempt=1)
        last = fail(journal, f"c{number}")
    deliverer.wake()
    until(lambda: cursor(tmp_path, robot).seq == last.seq)
    deliverer.close(0)
    [text] = robot.texts
    assert text.splitlines()[0] == "Boxcar r: 30 events"
    assert text.index("c0 failed") < text.index("c1 failed") < text.index("c29 failed")
    assert "since the last message: 30 started" in text
    assert len(text.splitlines()) < 16


def test_what_is_no_news_waits_for_the_next_message(robot, journal, tmp_path):
    deliverer, _ = sender(journal, robot, tmp_path)
    for cell in ("a", "b"):
        journal.append("cell.started", cell=cell, attempt=1)
    deliverer.wake()
    deliverer.close(0)
    assert robot.bodies == []
    assert deliverer.pending() == 0
    deliverer, _ = sender(journal, robot, tmp_path)
    done = journal.append("queue.done", verified=2, failed=0)
    deliverer.wake()
    until(lambda: cursor(tmp_path, robot).seq == done.seq)
    deliverer.close(0)
    [text] = robot.texts
    assert "q1 done: 2 cells verified" in text
    assert "since the last message: 2 started" in text


def test_what_is_left_is_said_without_reading_the_journal_again(
    robot, journal, tmp_path, monkeypatch
):
    about = {"pid": 1, "release": "d" * 64, "start_index": 0}
    flush(journal.path, tmp_path / "delivered.json", (), 0, chats=[robot.chat()])
    journal.append("agent.started", **about)
    journal.append("queue.started", cells=9)
    fail(journal, "a")
    deliverer, _ = sender(journal, robot, tmp_path)
    again = "boxcar.shared.files.journal.read_journal"
    monkeypatch.setattr(again, lambda _: pytest.fail("read again"))
    until(lambda: cursor(tmp_path, robot).seq == 3)
    again = fail(journal, "b")
    deliverer.wake()
    until(lambda: cursor(tmp_path, robot).seq == again.seq)
    deliverer.close(0)
    assert ["left: 8 of 9 cells" in robot.texts[0], "left: 7 of 9 cells" in robot.texts[1]] == [
        True,
        True,
    ]
    deliverer, _ = sender(journal, robot, tmp_path)
    later = fail(journal, "c")
    deliverer.wake()
    until(lambda: cursor(tmp_path, robot).seq == later.seq)
    deliverer.close(0)
    assert "left: 6 of 9 cells" in robot.texts[2], "an agent that is started anew knows it too"


def test_a_chat_that_is_new_begins_with_what_comes_now(robot, journal, tmp_path):
    fail(journal, "old")
    deliverer, _ = sender(journal, robot, tmp_path)
    until(lambda: cursor(tmp_path, robot).seq == 1)
    new = fail(journal, "new")
    deliverer.wake()
    until(lambda: cursor(tmp_path, robot).seq == new.seq)
    deliverer.close(0)
    assert ["new failed" in text and "old" not in text for text in robot.texts] == [True]


@pytest.mark.parametrize("channel", ["feishu", "dingtalk", "telegram", "ntfy"])
def test_the_rate_of_the_service_is_kept(channel, robot, journal, tmp_path):
    robot.last = (200, {}, YES[channel])
    rate = known.CHANNELS[channel].rate
    tries_s: list[float] = []
    deliverer, clock = sender(journal, robot, tmp_path, channel)
    for number in range(12):
        last = fail(journal, f"c{number}")
        deliverer.wake()
        until(lambda seq=last.seq: cursor(tmp_path, robot, channel).seq == seq)
        tries_s.append(clock.now_s)
    deliverer.close(0)
    for most, window_s in rate:
        apart = [b - a for a, b in zip(tries_s, tries_s[most:], strict=False)]
        assert all(one >= window_s for one in apart)


def test_five_a_day_are_five_also_for_an_agent_that_is_started_anew(robot, journal, tmp_path):
    for number in range(5):
        deliverer, _ = sender(journal, robot, tmp_path, "serverchan")
        last = fail(journal, f"c{number}")
        deliverer.wake()
        until(lambda seq=last.seq: cursor(tmp_path, robot, "serverchan").seq == seq)
        deliverer.close(0)
    deliverer, clock = sender(journal, robot, tmp_path, "serverchan")
    last = fail(journal, "sixth")
    deliverer.wake()
    until(lambda: cursor(tmp_path, robot, "serverchan").seq == last.seq)
    deliverer.close(0)
    assert clock.waits_s[0] == 86_400.0


def test_a_retry_after_is_waited_for(robot, journal, tmp_path):
    robot.script = [(429, {"retry-after": "77"}, b"")]
    deliverer, clock = sender(journal, robot, tmp_path)
    last = fail(journal, "a")
    deliverer.wake()
    until(lambda: cursor(tmp_path, robot).seq == last.seq)
    deliverer.close(0)
    assert 77.0 in clock.waits_s


def test_what_was_left_is_sent_late_and_counted(robot, journal, tmp_path):
    chats, path = [robot.chat()], tmp_path / "delivered.json"
    assert flush(journal.path, path, (), LIMIT_S, chats=chats) == 0
    fail(journal, "a")
    robot.last = (200, {}, NO)
    assert flush(journal.path, path, (), 0.3, chats=chats) == 1
    robot.last = (200, {}, YES["feishu"])
    assert flush(journal.path, path, (), LIMIT_S, chats=chats) == 0
    assert cursor(tmp_path, robot).seq == 1
    assert cursor(tmp_path, robot).channel == "feishu"


def test_two_chats_of_one_bot_have_cursors_of_their_own():
    one = Endpoint("telegram", "https://api.telegram.org", "token", "1")
    other = Endpoint("telegram", "https://api.telegram.org", "token", "2")
    assert key_of(one) != key_of(other)
    signed = Endpoint("feishu", "https://host/x", "new-secret")
    assert key_of(signed) == key_of(Endpoint("feishu", "https://host/x"))
