"""ntfy, at ntfy.sh or a server of one's own. The URL ends in the topic; a token is the secret.

https://docs.ntfy.sh/publish/#publish-as-json
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.channels import answer, words
from boxcar.shared.channels.answer import Answer, Endpoint, Later, Refused, Request, Taken

RATE = ((1, 5.0),)
_TITLE = 100
_TEXT_BYTES = 3_800  # of more it makes an attachment


def request(endpoint: Endpoint, text: str, now_s: float) -> Request:
    server, _, topic = endpoint.url.rstrip("/").rpartition("/")
    title = words.title(text, _TITLE)
    body = {"topic": topic, "title": title, "message": words.within(text, _TEXT_BYTES)}
    bearer = {"authorization": f"Bearer {endpoint.secret}"} if endpoint.secret else {}
    return answer.post(f"{server}/", body, bearer)


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    if found := answer.not_now(status, headers, body):
        return found
    if answer.is_web_page(body):
        return Later(f"answered {status} with a web page: a captive portal?")
    if "error" in answer.document(body):
        return Refused(answer.words(status, body))
    return Taken()
