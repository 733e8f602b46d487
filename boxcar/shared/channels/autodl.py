"""AutoDL's own message to the account's WeChat. `code` is "Success" where it took one.

https://www.autodl.com/docs/wechat_message
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.channels import answer, words
from boxcar.shared.channels.answer import Answer, Endpoint, Request

RATE = ((1, 6.0),)
_TITLE = 32
_TEXT_BYTES = 2_000


def request(endpoint: Endpoint, text: str, now_s: float) -> Request:
    body = {
        "title": words.title(text, _TITLE),
        "name": "Boxcar",
        "content": words.within(text, _TEXT_BYTES),
    }
    return answer.post(endpoint.url, body, {"authorization": endpoint.secret})


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    return answer.by_code(status, headers, body, key="code", good="Success")
