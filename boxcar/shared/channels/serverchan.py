"""ServerChan: messages to WeChat, five a day in the free plan. `code` says what came of one.

https://sct.ftqq.com
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.channels import answer, words
from boxcar.shared.channels.answer import Answer, Endpoint, Request

RATE = ((5, 86_400.0),)
_TITLE = 32
_TEXT_BYTES = 15_000
_FENCE = "```"


def request(endpoint: Endpoint, text: str, now_s: float) -> Request:
    # `desp` is markdown: in a fence names keep their underscores, and lines are lines.
    plain = words.within(text, _TEXT_BYTES).replace(_FENCE, "'''")
    body = {"title": words.title(text, _TITLE), "desp": f"{_FENCE}\n{plain}\n{_FENCE}"}
    return answer.post(endpoint.url, body)


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    return answer.by_code(status, headers, body, key="code", good=0)
