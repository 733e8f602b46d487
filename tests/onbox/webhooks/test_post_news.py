from __future__ import annotations

import json
import os
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from robot import NO, TOKEN, YES
from waiting import LIMIT_S

from boxcar.shared.channels import known
from boxcar.shared.channels.answer import Endpoint
from boxcar.shared.errors import InputError
from boxcar.shared.files import delivered
from boxcar.shared.wire import news_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import door
from onbox.webhooks import post_news

pytestmark = pytest.mark.usefixtures("no_proxy")
RUN = RunOnBox("tiny", "/tier", "~/data")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def posted(*endpoints: Endpoint, hook: str = "") -> tuple[news_asks.Posted, ...]:
    to = tuple(news_asks.Address(one.channel, one.url, one.secret, one.to) for one in endpoints)
    return post_news.answer(news_asks.PostNews(to, "Boxcar r: a test", hook), RUN).posted


@pytest.mark.parametrize("channel", known.NAMES)
def test_each_channel_is_taken_and_refused_by_the_services_own_answer(channel, robot):
    robot.script = [(200, {}, YES[channel]), (400, {}, NO)]
    [taken] = posted(robot.chat(channel))
    [refused] = posted(robot.chat(channel))
    assert (taken.verdict, taken.status) == ("taken", 200)
    assert (refused.verdict, refused.status) == ("refused", 400)
    assert "nobody here" in refused.said


def test_a_webhook_gets_a_signed_event_of_its_own_type(robot):
    from standardwebhooks import Webhook

    robot.last = (204, {}, b"")
    url = robot.chat().url
    [told] = posted(Endpoint("webhook", url, SECRET))
    assert (told.verdict, told.said) == ("taken", "answered 204")
    [body], [headers] = robot.bodies, robot.headers
    assert body["type"] == "notify.test"
    assert body["data"] == {"run": "tiny", "text": "Boxcar r: a test"}
    spelled = json.dumps(body, separators=(",", ":"))
    assert Webhook(SECRET).verify(spelled, headers) == body


@pytest.mark.parametrize(
    ("step", "verdict"),
    [
        ((302, {"location": "/x"}, b""), "later"),
        ((200, {}, b"<html>"), "later"),
        ((503, {}, b""), "later"),
        ((401, {}, b"who"), "refused"),
    ],
)
def test_a_webhook_that_did_not_take_it_is_not_called_taken(step, verdict, robot):
    robot.script = [step]
    [told] = posted(Endpoint("webhook", robot.chat().url, SECRET))
    assert told.verdict == verdict


def test_what_a_service_repeats_is_told_without_the_secret_and_without_control_characters(robot):
    url = f"{robot.chat().url}/a%2Fsecret%2Fpath"
    repeated = f"\x1b[2J {url.replace('/', chr(92) + '/')} a/secret/path x{'y' * 290}{TOKEN}"
    robot.script = [(200, {}, json.dumps({"code": 1, "msg": repeated}).encode())]
    [told] = posted(Endpoint("feishu", url))
    assert told.verdict == "refused"
    assert TOKEN[:6] not in told.said
    assert "secret" not in told.said
    assert "\x1b" not in told.said
    assert len(told.said) < 400


def test_nothing_that_is_no_answer_names_the_address(robot):
    [told] = posted(Endpoint("feishu", f"http://127.0.0.1:1/{TOKEN}"))
    assert told == news_asks.Posted("later", "ConnectionError (ConnectionRefusedError)")


def test_the_services_clock_is_compared_with_ours(robot):
    import time

    robot.date = formatdate(time.time() + 3700, usegmt=True)
    [told] = posted(robot.chat())
    assert told.ahead_s is not None
    assert -3760 < told.ahead_s < -3640


def test_answers_are_in_the_order_of_the_endpoints(robot):
    away = Endpoint("feishu", "http://127.0.0.1:1/x")
    told = posted(away, robot.chat(), away)
    assert [one.verdict for one in told] == ["later", "taken", "later"]


def test_the_proxies_of_the_hook_are_used(robot, monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    there = f"http://127.0.0.1:{robot.server_address[1]}"
    [told] = posted(
        Endpoint("feishu", "http://nowhere.invalid/x"), hook=f"export http_proxy={there}"
    )
    assert told.verdict == "taken"


@pytest.mark.parametrize(
    "endpoint", [Endpoint("pigeon", "http://x/"), Endpoint("webhook", "http://x/", "no")]
)
def test_an_endpoint_of_no_known_kind_is_refused_before_anything_is_sent(endpoint, robot):
    with pytest.raises(InputError):
        posted(robot.chat(), endpoint)
    assert robot.bodies == []


def test_nothing_is_left_on_the_box(robot, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    posted(robot.chat(), hook="true")
    assert list(tmp_path.rglob("*")) == []


# --- what is delivered late


def ask(run: Any, **words: Any) -> dict[str, Any]:
    places = {"durable_dir": run.plan.durable_dir, "data_dir": run.plan.box("box-a").data_dir}
    what = {"queue": "q1", "digest": run.release.name, "credentials": f"{run.root}/none.json"}
    request = {"ask": "deliver", "run": "tiny", **places, **what, **words}
    return door.answer(json.dumps(request).encode())


def test_what_nobody_wants_is_not_left(make_run):
    run = make_run({"a": {}})
    assert run.finish() == 0
    assert ask(run) == {"left": 0}


def test_an_endpoint_that_is_away_leaves_its_events(make_run, monkeypatch):
    monkeypatch.setattr("onbox.answers.deliver_late.DELIVER_S", 0.2)
    run = make_run({"a": {}})
    assert run.finish() == 0
    path = Path(run.plan.box("box-a").credentials)
    webhook = {"url": "http://127.0.0.1:9/x", "secret": SECRET}
    path.write_text(json.dumps({"env": {}, "webhooks": [webhook]}))
    path.chmod(0o600)
    told = ask(run, credentials=str(path))
    assert told["left"] > 0
    found = delivered.read_delivered(run.durable.delivered("q1"))
    assert all(cursor.seq == 0 for cursor in found.endpoints.values())


def test_an_agent_that_runs_delivers_by_itself(make_run):
    run = make_run({"a": {"gate": 1}})
    agent = run.start()
    run.wait_for_step("a")
    assert ask(run)["error"]["kind"] == "TemporaryError"
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0


def test_a_queue_that_the_release_has_not_is_refused(make_run):
    assert ask(make_run({"a": {}}), queue="q9")["error"]["kind"] == "InputError"


def test_a_proxy_that_does_not_answer_is_named_and_not_asked_for(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # nobody listens there
    [said] = posted(Endpoint("webhook", "http://example.invalid/x", SECRET))
    assert said.verdict == "later" and "proxy in https_proxy or http_proxy does not" in said.said
