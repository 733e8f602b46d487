from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest
from robot import YES

from boxcar.shared.channels import answer, known
from boxcar.shared.channels.answer import Endpoint, Later, Refused, Taken, without_secrets

URL = "https://host/robot/0123456789abcdef"
NAME = '<at user_id="all">@all <!channel> <@U1> @everyone *a*_b_`c`'
# By the algorithm on each vendor's page, computed with openssl dgst; which examples there are is
# said at test_signatures_are_the_vendors.
FEISHU_SIGN = "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8="
DINGTALK_SAMPLE = "hmPWwU+7lVdm3ZZz0r9tSfx0L4Q26jWOZr9+Gs6EZQM="
DINGTALK_PUBLISHED = "HCbG3xNE3vzhO%2Bu7qCUL1jS5hsu2n5r2cFhnTrtyDAE%3D"
DINGTALK_SIGN = "tGWkA5eQOQNCNPDgphtxIoNLO+/gD8Lcb705KQoRzeY="


def request_of(name: str, text: str = "title\nbody", secret: str = "token-12345678") -> Any:
    return known.CHANNELS[name].request(Endpoint(name, URL, secret, "4711"), text, 1_599_360_473.5)


def body_of(name: str, text: str = "title\nbody") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request_of(name, text).body)
    return found


BODIES = {
    "wecom": {"msgtype": "text", "text": {"content": "title\nbody"}},
    "serverchan": {"title": "title", "desp": "```\ntitle\nbody\n```"},
    "bark": {"title": "title", "body": "title\nbody"},
    "ntfy": {"topic": "0123456789abcdef", "title": "title", "message": "title\nbody"},
    "telegram": {"chat_id": "4711", "text": "title\nbody", "disable_web_page_preview": True},
    "slack": {"text": "title\nbody", "mrkdwn": False},
    "discord": {"content": "title\nbody", "allowed_mentions": {"parse": []}},
    "autodl": {"title": "title", "name": "Boxcar", "content": "title\nbody"},
    "dingtalk": {
        "msgtype": "text",
        "text": {"content": "title\nbody"},
        "at": {"isAtAll": False, "atMobiles": [], "atUserIds": []},
    },
}


@pytest.mark.parametrize("name", BODIES)
def test_the_body_is_what_the_service_documents(name):
    assert body_of(name) == BODIES[name]


@pytest.mark.parametrize("name", ["feishu", "lark"])
def test_feishu_and_lark_sign_in_the_body(name):
    found = body_of(name)
    assert found["msg_type"] == "text"
    assert found["content"] == {"text": "title\nbody"}
    assert found["timestamp"] == "1599360473"
    assert found["sign"] == known.sign_feishu("1599360473", "token-12345678")


def test_dingtalk_signs_in_the_query_and_keeps_the_token():
    endpoint = Endpoint("dingtalk", "https://oapi.dingtalk.com/robot/send?access_token=t", "SEC1")
    query = parse_qs(
        urlsplit(known.CHANNELS["dingtalk"].request(endpoint, "a", 1_599_360_473.5).url).query
    )
    assert query["access_token"] == ["t"]
    assert query["timestamp"] == ["1599360473500"]
    assert query["sign"] == [known.sign_dingtalk("1599360473500", "SEC1")]


def test_signatures_are_the_vendors():
    """Neither vendor publishes a whole example for its robots, with secret, time and signature.

    Feishu's page has the time 1599360473 and, in its sample code, the secret `demo`, and shows no
    signature; what openssl makes of both is also what tests of other projects expect. DingTalk's
    page has sample code alone, with the secret `this is secret`. Its one whole example, of another
    interface, signs the time without the secret: it shows that HMAC, base64 and the escapes of a
    URL are as everywhere.
    """
    assert known.sign_feishu("1599360473", "demo") == FEISHU_SIGN
    assert known.sign_dingtalk("1577262236757", "this is secret") == DINGTALK_SAMPLE
    published = hmac.new(b"testappSecret", b"1546084445901", hashlib.sha256).digest()
    assert quote_plus(base64.b64encode(published)) == DINGTALK_PUBLISHED
    assert known.sign_dingtalk("1599360473000", "SECdemo") == DINGTALK_SIGN


def test_without_a_secret_nothing_is_signed():
    assert "sign" not in json.loads(request_of("feishu", secret="").body)
    assert request_of("dingtalk", secret="").url == URL


def test_tokens_stand_where_the_service_looks():
    assert request_of("telegram").url == f"{URL}/bottoken-12345678/sendMessage"
    assert request_of("ntfy").headers["authorization"] == "Bearer token-12345678"
    assert request_of("ntfy").url == "https://host/robot/"
    assert request_of("autodl").headers["authorization"] == "token-12345678"


@pytest.mark.parametrize("name", known.NAMES)
def test_nothing_in_a_name_calls_anybody(name):
    sent = json.dumps(body_of(name, NAME), ensure_ascii=False)
    calls = {
        "feishu": ["<at"],
        "lark": ["<at"],
        "wecom": ["<@"],
        "slack": ["<!", "<@"],
        "telegram": ["@all", "@everyone", "parse_mode"],
    }
    assert not [call for call in calls.get(name, []) if call in sent]


def test_names_keep_their_underscores_in_discord():
    assert body_of("discord", "a_b_c *d*")["content"] == r"a\_b\_c \*d\*"


SIZES = {"wecom": 2048, "telegram": 4096 * 3, "feishu": 20_000, "dingtalk": 20_000, "ntfy": 4096}


@pytest.mark.parametrize("name", known.NAMES)
@pytest.mark.parametrize("letter", ["a", "拆", "_", "\udcff"])
def test_a_text_of_100_kb_is_cut_to_what_the_service_takes(name, letter):
    found = body_of(name, letter * 100_000)
    texts = [
        v for one in found.values() for v in (one.values() if isinstance(one, dict) else [one])
    ]
    longest = max((text for text in texts if isinstance(text, str)), key=len)
    assert len(longest.encode()) <= SIZES.get(name, 16_000)
    assert len(longest) <= (2_000 if name == "discord" else 16_000)


NO: dict[str, Any] = {
    "feishu": {"code": 19021, "msg": "sign match fail"},
    "lark": {"code": 19001, "msg": "param invalid"},
    "dingtalk": {"errcode": 310000, "errmsg": "keywords not in content"},
    "wecom": {"errcode": 93000, "errmsg": "invalid webhook url"},
    "serverchan": {"code": 40001, "message": "bad pushkey"},
    "bark": {"code": 400, "message": "failed to get device token"},
    "ntfy": {"code": 40101, "http": 401, "error": "unauthorized"},
    "telegram": {"ok": False, "error_code": 400, "description": "chat not found"},
    "slack": {"ok": False, "error": "invalid_token"},
    "discord": {"code": 50006, "message": "Cannot send an empty message"},
    "autodl": {"code": "TokenInvalid", "msg": "no such token"},
}
BUSY: dict[str, Any] = {
    "feishu": {"code": 11232, "msg": "frequency limited"},
    "lark": {"code": 9499, "msg": "too many requests"},
    "dingtalk": {"errcode": 130101, "errmsg": "send too fast"},
    "wecom": {"errcode": 45009, "errmsg": "api freq out of limit"},
    "telegram": {"ok": False, "error_code": 429, "parameters": {"retry_after": 7}},
}


def spelled(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


@pytest.mark.parametrize("name", known.NAMES)
def test_its_own_yes_is_taken_and_its_own_no_is_not(name):
    taken = known.CHANNELS[name].taken
    assert taken(200, {}, YES[name]) == Taken()
    found = taken(200, {}, spelled(NO[name]))
    assert isinstance(found, Refused)
    assert next(str(v) for v in NO[name].values() if isinstance(v, str)) in found.why


@pytest.mark.parametrize("name", BUSY)
def test_what_is_limited_in_the_body_is_tried_later(name):
    assert isinstance(known.CHANNELS[name].taken(200, {}, spelled(BUSY[name])), Later)


def test_telegram_and_discord_say_how_long_to_wait():
    answer = known.CHANNELS["telegram"].taken(429, {}, spelled(BUSY["telegram"]))
    assert answer.retry_after_s == 7.0  # type: ignore[union-attr]
    answer = known.CHANNELS["discord"].taken(429, {}, b'{"retry_after": 0.5}')
    assert answer.retry_after_s == 0.5  # type: ignore[union-attr]


@pytest.mark.parametrize("name", known.NAMES)
@pytest.mark.parametrize("status", [301, 302, 307, 408, 429, 500, 502, 503])
def test_a_status_that_is_no_answer_is_tried_later(name, status):
    found = known.CHANNELS[name].taken(status, {"Retry-After": "3"}, YES[name])
    assert isinstance(found, Later)
    assert found.retry_after_s == 3.0


@pytest.mark.parametrize("name", known.NAMES)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_status_that_says_no_is_a_refusal(name, status):
    found = known.CHANNELS[name].taken(status, {}, b"no such robot")
    assert found == Refused(f"answered {status}: no such robot")


@pytest.mark.parametrize("name", known.NAMES)
@pytest.mark.parametrize("page", [b"<html>Sign in</html>", b"  <!doctype html>"])
def test_a_captive_portal_took_nothing(name, page):
    assert isinstance(known.CHANNELS[name].taken(200, {}, page), Later)


SAYS_SO = [name for name, channel in known.CHANNELS.items() if channel.key]


@pytest.mark.parametrize("name", SAYS_SO)
@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"null", b"ok", b"{" * 5000, b"\xff"])
def test_200_without_the_services_own_word_took_nothing(name, body):
    assert isinstance(known.CHANNELS[name].taken(200, {}, body), Later)


@pytest.mark.parametrize("name", SAYS_SO)
@pytest.mark.parametrize("code", [False, "0", None, 0.0, "200", 1, "true", [], "success"])
def test_what_only_looks_like_yes_is_none(name, code):
    key = next(iter(json.loads(YES[name])))
    assert not isinstance(known.CHANNELS[name].taken(200, {}, spelled({key: code})), Taken)


def test_no_secret_is_in_a_repr_or_in_what_a_service_repeats():
    endpoint = Endpoint("bark", URL, "token-12345678", "4711")
    assert "0123456789abcdef" not in repr(endpoint) + repr(request_of("bark"))
    assert "token-12345678" not in repr(endpoint) + repr(request_of("autodl"))
    told = f"no device 0123456789abcdef at {URL} with token-12345678 for 4711"
    assert without_secrets(told, endpoint) == "no device … at … with … for …"


@pytest.mark.parametrize(
    ("url", "service"),
    [
        ("https://open.feishu.cn/open-apis/bot/v2/hook/x", "feishu"),
        ("https://OPEN.FEISHU.CN:443/open-apis/bot/v2/hook/x", "feishu"),
        ("https://open.feishu.cn./x", "feishu"),
        ("https://open.larksuite.com/open-apis/bot/v2/hook/x", "lark"),
        ("https://oapi.dingtalk.com/robot/send?access_token=x", "dingtalk"),
        ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=x", "wecom"),
        ("https://hooks.slack.com/services/T/B/x", "slack"),
        ("https://discord.com/api/webhooks/1/x", "discord"),
        ("https://ptb.discord.com/api/webhooks/1/x", "discord"),
        ("https://api.telegram.org/bot1:x/sendMessage", "telegram"),
        ("https://sctapi.ftqq.com/x.send", "serverchan"),
        ("https://4711.push.ft07.com/send/x.send", "serverchan"),
        ("https://api.day.app/x", "bark"),
        ("https://ntfy.sh/topic", "ntfy"),
        ("https://www.autodl.com/api/v1/wechat/message/send", "autodl"),
        ("https://discord.com/my/own", None),
        ("https://open.feishu.cn.example.org/x", None),
        ("https://notopen-feishu.cn/x", None),
        ("https://example.org/?u=open.feishu.cn/", None),
        ("http://[::1/", None),
    ],
)
def test_whose_address_it_is(url, service):
    assert known.service_of(url) == service


# --- how often


@pytest.mark.parametrize(
    ("limits", "tries_s", "wait_s"),
    [
        (((2, 10.0),), [], 0.0),
        (((2, 10.0),), [100.0], 0.0),
        (((2, 10.0),), [99.0, 100.0], 9.0),
        (((2, 10.0),), [90.0, 99.0, 100.0], 9.0),
        (((1, 1.0), (3, 60.0)), [98.0, 99.0, 100.0], 58.0),
        (((1, 60.0),), [5_000.0], 60.0),  # the clock was set back
        (((1, 60.0),), [39.0], 0.0),
    ],
)
def test_how_long_to_wait_for_a_rate(limits, tries_s, wait_s):
    assert max(0.0, answer.wait_for_rate_s(limits, tries_s, 100.0)) == wait_s


@pytest.mark.parametrize(
    ("limits", "queues", "part"),
    [
        (((20, 60.0),), 1, ((20, 60.0),)),
        (((20, 60.0),), 3, ((6, 60.0),)),
        (((5, 1.0), (100, 60.0)), 10, ((1, 2.0), (10, 60.0))),
        (((1, 5.0),), 4, ((1, 20.0),)),
        (((5, 86_400.0),), 10, ((5, 86_400.0),)),
        (((20, 60.0),), 0, ((20, 60.0),)),
    ],
)
def test_queues_that_share_a_robot_take_their_part_of_its_rate(limits, queues, part):
    assert answer.share_of_rate(limits, queues) == part
    for (most, window_s), (most_all, window_all_s) in zip(part, limits, strict=True):
        is_parted = window_all_s < 86_400.0
        assert not is_parted or max(1, queues) * most / window_s <= most_all / window_all_s


@pytest.mark.parametrize("page", ["notify.md", "notify.zh.md"])
def test_the_pages_have_a_row_of_every_channel(page):
    text = (Path(__file__).parents[3] / "docs" / page).read_text("utf-8")
    assert not [name for name in known.NAMES if f"| `{name}: {{" not in text]
