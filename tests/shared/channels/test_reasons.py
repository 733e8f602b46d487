"""Why a service did not take a message, by the words that each is known to answer."""

from __future__ import annotations

import pytest

from boxcar.shared.catalogue import notify
from boxcar.shared.channels import known, reasons
from boxcar.shared.channels.reasons import Told, reason

# As the services' own pages and people's reports have them.
SAID = [
    (
        "feishu",
        '{"code":19021,"msg":"sign match fail or timestamp is not within one hour"}',
        "secret",
    ),
    ("feishu", '{"StatusCode": 19021}', "secret"),
    ("lark", '{"code":19022,"msg":"Ip Not Allowed"}', "address"),
    ("feishu", '{"code":19024,"msg":"Key Words Not Found"}', "keyword"),
    (
        "feishu",
        '{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}',
        "gone",
    ),
    ("feishu", '{"code":11232,"msg":"frequency limited"}', "often"),
    ("dingtalk", '{"errcode":310000,"errmsg":"keywords not in content"}', "keyword"),
    ("dingtalk", '{"errcode":310000,"errmsg":"ip 1.2.3.4 not in whitelist"}', "address"),
    ("dingtalk", '{"errcode":310000,"errmsg":"sign not match"}', "secret"),
    ("dingtalk", '{"errcode":310000,"errmsg":"invalid timestamp"}', "secret"),
    ("dingtalk", '{"errcode":300001,"errmsg":"token is not exist"}', "gone"),
    ("dingtalk", '{"errcode":130101,"errmsg":"send too fast"}', "often"),
    ("wecom", '{"errcode":93000,"errmsg":"invalid webhook url"}', "gone"),
    ("wecom", '{"errcode":45009,"errmsg":"api freq out of limit"}', "often"),
    ("serverchan", '{"code":40001,"message":"bad pushkey"}', "gone"),
    ("bark", '{"code":400,"message":"failed to get device token"}', "gone"),
    (
        "telegram",
        '{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}',
        "chat",
    ),
    ("slack", "channel_is_archived", "chat"),
    ("slack", "no_service", "gone"),
    ("autodl", '{"code":"AuthorizeFailed","msg":"no"}', "secret"),
]
BY_STATUS = [
    ("telegram", 401, '{"ok":false,"description":"Unauthorized"}', "secret"),
    ("ntfy", 403, '{"code":40301,"error":"forbidden"}', "secret"),
    ("discord", 404, '{"message": "Unknown Webhook", "code": 10015}', "gone"),
    ("webhook", 401, "", "secret"),
    ("webhook", 410, "", "gone"),
    ("webhook", 500, "", None),
    ("bark", 429, "", "often"),
]


@pytest.mark.parametrize(("channel", "body", "found"), SAID)
def test_the_services_own_words_name_the_reason(channel: str, body: str, found: str) -> None:
    assert reason(channel, Told(f"answered 200: {body}", 200)) == found


@pytest.mark.parametrize(("channel", "status", "body", "found"), BY_STATUS)
def test_where_the_status_says_it(channel: str, status: int, body: str, found: str | None) -> None:
    assert reason(channel, Told(f"answered {status}: {body}", status)) == found


@pytest.mark.parametrize("channel", [*known.NAMES, "webhook"])
def test_words_that_nobody_knows_have_no_reason_and_no_answer_is_out_of_reach(channel: str) -> None:
    assert reason(channel, Told("answered 400: something else", 400)) in (None, "secret")
    assert reason(channel, Told("ConnectTimeout")) == "away"


@pytest.mark.parametrize(
    ("channel", "ahead_s", "found"),
    [
        ("feishu", 3_661.0, "clock"),
        ("feishu", -3_661.0, "clock"),
        ("feishu", 3_000.0, "secret"),
        ("feishu", None, "secret"),
    ],
)
def test_a_clock_that_is_off_by_more_than_the_service_allows_is_the_reason(
    channel: str, ahead_s: float | None, found: str
) -> None:
    told = Told('answered 200: {"code":19021,"msg":"sign match fail"}', 200, ahead_s)
    assert reason(channel, told) == found


def test_a_webhook_allows_five_minutes() -> None:
    assert reason("webhook", Told("answered 401", 401, 400.0)) == "clock"
    assert reason("webhook", Told("answered 401", 401, 200.0)) == "secret"


def test_every_reason_has_a_sentence() -> None:
    assert {f"reason_{name}" for name in reasons.REASONS} <= set(notify.SENTENCES)
