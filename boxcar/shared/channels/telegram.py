"""A bot of Telegram. The secret is its token, `to` the chat; `ok` says whether it took a message.

https://core.telegram.org/bots/api#sendmessage
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from boxcar.shared.channels import answer, words
from boxcar.shared.channels.answer import Answer, Endpoint, Later, Request

RATE = ((1, 1.0), (20, 60.0))
_TEXT_BYTES = 4_000
# It makes a mention of these by itself, and then calls somebody.
_MENTION = re.compile(r"@(?=\w)")
_JOINER = "\u2060"


def request(endpoint: Endpoint, text: str, now_s: float) -> Request:
    quiet = _MENTION.sub(f"@{_JOINER}", words.within(text, _TEXT_BYTES))
    # No parse_mode: what is in a name is no format.
    body = {"chat_id": endpoint.to, "text": quiet, "disable_web_page_preview": True}
    return answer.post(f"{endpoint.url.rstrip('/')}/bot{endpoint.secret}/sendMessage", body)


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    found = answer.by_code(status, headers, body, key="ok", good=True)
    asked = answer.document(body).get("parameters")
    wait_s = asked.get("retry_after") if isinstance(asked, dict) else None
    if isinstance(wait_s, int) and not answer.document(body).get("ok"):
        return Later(answer.words(status, body), float(wait_s))
    return found
