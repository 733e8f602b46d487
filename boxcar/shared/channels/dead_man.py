"""A dead-man's service, which speaks when it hears nothing: healthchecks.io's protocol. Pure.

A request to the address of a check is a sign of life. Others speak it, too: Uptime Kuma's push
monitors, Dead Man's Snitch, Cronitor. https://healthchecks.io/docs/http_api/
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from boxcar.shared.channels import answer
from boxcar.shared.channels.answer import Answer, Endpoint, Later, Refused, Request, Taken

# The name of this line of `notify:`; it is no channel of news.
HEARTBEAT = "heartbeat"
BOX = "{box}"
LEAST_EVERY_S, EVERY_S = 60, 300


def filled(url: str, box: str) -> str:
    """The address of a box's own check. A name there is of a-z, 0-9, - and _ only."""
    return url.replace(BOX, re.sub(r"[^a-z0-9_-]", "-", box.lower()))


def request(endpoint: Endpoint) -> Request:
    return Request("GET", endpoint.url, {"user-agent": "boxcar"}, b"")


def taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """healthchecks.io answers 200 to every address of a check that is a UUID, and says in the body
    where there is none, or where it was too often. Others say `ok: false` in JSON.
    """
    if found := answer.not_now(status, headers, body):
        return found
    told, said = answer.words(status, body), body[:200].decode(errors="replace").lower()
    if "rate limited" in said:
        return Later(told)
    if "not found" in said or answer.document(body).get("ok") is False:
        return Refused(told)
    return Later(f"{told}: a captive portal?") if answer.is_web_page(body) else Taken()
