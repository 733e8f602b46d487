"""An incoming webhook of Slack. A 2xx took the message.

https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.channels import answer, words
from boxcar.shared.channels.answer import Answer, Endpoint, Later, Refused, Request, Taken

RATE = ((1, 1.0),)
_TEXT_BYTES = 4_000


def request(endpoint: Endpoint, text: str, now_s: float) -> Request:
    # Escaped as Slack asks for it, so `<!channel>` is only a text.
    quiet = words.within(text, _TEXT_BYTES).replace("&", "&amp;")
    quiet = quiet.replace("<", "&lt;").replace(">", "&gt;")
    return answer.post(endpoint.url, {"text": quiet, "mrkdwn": False})


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    if found := answer.not_now(status, headers, body):
        return found
    if answer.is_web_page(body):
        return Later(f"answered {status} with a web page: a captive portal?")
    # Slack's other doors answer 200 with `ok: false`.
    if answer.document(body).get("ok", True) is not True:
        return Refused(answer.words(status, body))
    return Taken()
