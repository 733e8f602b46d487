"""A webhook of a Discord channel. A 2xx took the message, of 2,000 characters at most.

https://discord.com/developers/docs/resources/webhook#execute-webhook
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from boxcar.shared.channels import answer, words
from boxcar.shared.channels.answer import Answer, Endpoint, Later, Refused, Request, Taken

RATE = ((5, 5.0), (30, 60.0))
_CHARACTERS = 2_000
_MARKDOWN = re.compile(r"([\\*_`~|<>#])")


def request(endpoint: Endpoint, text: str, now_s: float) -> Request:
    escaped = _MARKDOWN.sub(r"\\\1", words.within(text, 15_000))
    if len(escaped) > _CHARACTERS:
        escaped = escaped[: _CHARACTERS - 2].rstrip("\\") + "…"
    body = {"content": escaped, "allowed_mentions": {"parse": []}}
    return answer.post(endpoint.url, body)


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    told = answer.document(body)
    wait_s = told.get("retry_after")
    if status == 429 and isinstance(wait_s, (int, float)):
        return Later(answer.words(status, body), float(wait_s))
    if found := answer.not_now(status, headers, body):
        return found
    if answer.is_web_page(body):
        return Later(f"answered {status} with a web page: a captive portal?")
    # A message has an id; an error has a code.
    if "code" in told and "id" not in told:
        return Refused(answer.words(status, body))
    return Taken()
