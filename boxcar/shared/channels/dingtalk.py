"""A custom robot of DingTalk. It answers 200 to everything, and says in `errcode` what came of it.

https://open.dingtalk.com/document/robots/customize-robot-security-settings
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import urlencode

from boxcar.shared.channels import answer, words
from boxcar.shared.channels.answer import Answer, Endpoint, Request

RATE = ((20, 60.0),)
_BUSY = (-1, 130101, 410100)
_TEXT_BYTES = 15_000


def request(endpoint: Endpoint, text: str, now_s: float) -> Request:
    # Text, not markdown: names are full of underscores. Only who stands in `at` is called.
    body = {
        "msgtype": "text",
        "text": {"content": words.within(text, _TEXT_BYTES)},
        "at": {"isAtAll": False, "atMobiles": [], "atUserIds": []},
    }
    return answer.post(_address(endpoint, now_s), body)


def _address(endpoint: Endpoint, now_s: float) -> str:
    if not endpoint.secret:
        return endpoint.url
    stamp = str(int(now_s * 1000))
    query = urlencode({"timestamp": stamp, "sign": sign(stamp, endpoint.secret)})
    return f"{endpoint.url}{'&' if '?' in endpoint.url else '?'}{query}"


def sign(stamp: str, secret: str) -> str:
    """HMAC-SHA256 of `stamp`, line feed, secret, under the key `secret`."""
    digest = hmac.new(secret.encode(), f"{stamp}\n{secret}".encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    return answer.by_code(status, headers, body, key="errcode", good=0, later=_BUSY)
