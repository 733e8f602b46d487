from __future__ import annotations

from typing import Any

import pytest

from boxcar.laptop.fitness import news_hosts
from boxcar.laptop.project.notify.endpoints import LAPTOP
from boxcar.laptop.project.notify.targets import Target
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.channels.answer import Endpoint
from boxcar.shared.errors import TemporaryError
from boxcar.shared.wire import news_asks

SECRET = "0123456789abcdef"
FEISHU = Target("feishu", "feishu", (), Endpoint("feishu", f"https://open.feishu.cn/hook/{SECRET}"))
TELEGRAM = Target(
    "telegram", "telegram", (), Endpoint("telegram", "https://api.telegram.org", SECRET, "4711")
)
OWN = Target(
    "webhook", "webhook", (), Endpoint("webhook", f"http://u:{SECRET}@[::1]:8787/{SECRET}?k=v")
)


class Boxes:
    """Boxes that reach what is not in `away`."""

    def __init__(self, away: dict[str, str]) -> None:
        self.away = away
        self.asked: list[news_asks.TryHosts] = []

    def ask(self, box: str, question: Any, **more: Any) -> Any:
        self.asked.append(question)
        if box == "box-z":
            raise TemporaryError("box-z: the link is down")
        return news_asks.HostsTried(
            tuple(news_asks.HostTried(self.away.get(host.name)) for host in question.hosts)
        )


def said(text: object, language: str) -> str:
    return text.said(language) if isinstance(text, Sentence) else str(text)


def test_a_box_is_told_hosts_and_no_part_of_an_address_that_is_secret() -> None:
    boxes = Boxes({})
    [row] = news_hosts.check(boxes.ask, [FEISHU, TELEGRAM, OWN], ["box-a"], "hook")
    assert (row.verdict, row.found) == (
        "ok",
        "feishu (open.feishu.cn), telegram (api.telegram.org), webhook ([::1]:8787)",
    )
    [asked] = boxes.asked
    assert asked.hosts[0] == news_asks.Host("open.feishu.cn", 443, is_tls=True)
    assert asked.hosts[2] == news_asks.Host("::1", 8787, is_tls=False)
    assert asked.hook == "hook"
    assert SECRET not in repr(asked) + repr(row)


def test_what_is_out_of_reach_is_a_warning_with_channel_host_and_what_to_do() -> None:
    boxes = Boxes({"api.telegram.org": news_asks.NO_ANSWER, "::1": news_asks.CLOSED})
    rows = news_hosts.check(boxes.ask, [FEISHU, TELEGRAM, OWN], ["box-a"], "")
    assert [(row.what, row.verdict) for row in rows] == [
        ("news", v) for v in ("warn", "warn", "ok")
    ]
    assert said(rows[0].found, "en") == "telegram (api.telegram.org): no answer in time"
    assert "from: laptop" in said(rows[0].reason, "en")
    assert "another channel" in said(rows[0].reason, "en")
    assert "listen --through box-a" in said(rows[1].reason, "en")
    assert said(rows[0].found, "zh") == "telegram（api.telegram.org）：超时没有应答"
    assert "from: laptop" in said(rows[0].reason, "zh")
    assert SECRET not in repr(rows)


@pytest.mark.parametrize("problem", news_asks.AWAY)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_problem_has_words(problem: str, language: str) -> None:
    [row] = news_hosts.judge(
        "box-a", [FEISHU], news_asks.HostsTried((news_asks.HostTried(problem),))
    )
    assert "away_" not in said(row.found, language)
    assert "open.feishu.cn" in said(row.found, language)


def test_what_this_machine_sends_or_nobody_is_not_tried_from_a_box() -> None:
    here = Target("slack", "slack", (), Endpoint("slack", "https://hooks.slack.com/x"), "", LAPTOP)
    off = Target("bark", "bark", ("BARK_URL",), None, "BARK_URL")
    boxes = Boxes({})
    assert news_hosts.check(boxes.ask, [here, off], ["box-a"], "") == []
    assert boxes.asked == []


def test_a_box_that_does_not_say_is_no_reason_against_a_launch() -> None:
    [row] = news_hosts.check(Boxes({}).ask, [FEISHU], ["box-z"], "")
    assert (row.verdict, str(row.reason)) == ("warn", "box-z: the link is down")
