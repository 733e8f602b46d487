"""A group robot of WeCom. It answers 200 to everything, and says in `errcode` what came of it.

https://developer.work.weixin.qq.com/document/path/91770
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.channels import answer, words
from boxcar.shared.channels.answer import Answer, Endpoint, Request

RATE = ((20, 60.0),)
_BUSY = (-1, 45009)
_TEXT_BYTES = 2048


def request(endpoint: Endpoint, text: str, now_s: float) -> Request:
    # `<@somebody>` in a text calls them.
    quiet = words.within(text.replace("<", "＜"), _TEXT_BYTES)
    return answer.post(endpoint.url, {"msgtype": "text", "text": {"content": quiet}})


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    return answer.by_code(status, headers, body, key="errcode", good=0, later=_BUSY)
