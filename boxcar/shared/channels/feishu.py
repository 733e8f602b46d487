"""A custom robot of Feishu. It answers 200 to everything, and says in `code` what came of it.

https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from boxcar.shared.channels import answer, words
from boxcar.shared.channels.answer import Answer, Endpoint, Request

RATE = ((5, 1.0), (100, 60.0))
_BUSY = (9499, 11232)
_TEXT_BYTES = 15_000  # the whole body may have 20 kB


def request(endpoint: Endpoint, text: str, now_s: float) -> Request:
    # `<at user_id="all">` in a text calls everybody.
    quiet = words.within(text, _TEXT_BYTES).replace("<", "＜")
    body: dict[str, Any] = {"msg_type": "text", "content": {"text": quiet}}
    if endpoint.secret:
        stamp = str(int(now_s))
        body = {"timestamp": stamp, "sign": sign(stamp, endpoint.secret)} | body
    return answer.post(endpoint.url, body)


def sign(stamp: str, secret: str) -> str:
    """HMAC-SHA256 of nothing, under the key `stamp`, line feed, secret."""
    digest = hmac.new(f"{stamp}\n{secret}".encode(), b"", hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    # Robots of the first kind say StatusCode.
    key = "code" if "code" in answer.document(body) else "StatusCode"
    return answer.by_code(status, headers, body, key=key, good=0, later=_BUSY)
