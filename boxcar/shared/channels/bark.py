"""Bark: messages to an iPhone. The URL holds the device's key; `code` is 200 where it took one.

https://bark.day.app
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.channels import answer, words
from boxcar.shared.channels.answer import Answer, Endpoint, Request

RATE = ((1, 1.0),)
_TITLE = 100
_TEXT_BYTES = 2_500  # Apple takes 4 kB with everything around it


def request(endpoint: Endpoint, text: str, now_s: float) -> Request:
    body = {"title": words.title(text, _TITLE), "body": words.within(text, _TEXT_BYTES)}
    return answer.post(endpoint.url, body)


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    return answer.by_code(status, headers, body, key="code", good=200)
