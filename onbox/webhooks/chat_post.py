"""One message to one chat service, once: TLS verified, redirects not followed, bounded in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from boxcar.shared.channels import known
from boxcar.shared.channels.answer import (
    ANSWER_BYTES,
    Answer,
    Endpoint,
    Later,
    Refused,
    Request,
    without_secrets,
)
from onbox.webhooks.post import CONNECT_S, READ_S, kind

if TYPE_CHECKING:
    from requests import Response

# Signed services refuse what is more than an hour off, and the others do not care.
_CLOCK_OFF_S = 300.0


def post(endpoint: Endpoint, text: str, clock: Callable[[], float] = time.time) -> Answer:
    """What the service says of this message. No secret is in the answer."""
    channel = known.channel(endpoint.channel)
    now_s = clock()
    try:
        request = channel.request(endpoint, text, now_s)
        status, headers, body = _send(request)
    except Exception as error:
        # Whatever it is, it is tried again; the message may hold the URL, so only its type is told.
        return Later(kind(error))
    answer = channel.taken(status, headers, body)
    if not isinstance(answer, (Later, Refused)):
        return answer
    why = without_secrets(answer.why, endpoint)
    if isinstance(answer, Refused):
        why += _clock_note(headers, now_s)
    return replace(answer, why=why)


def _send(request: Request) -> tuple[int, dict[str, str], bytes]:
    import logging

    import requests

    # Its warnings show the whole URL, and without a handler they go to the agent's log.
    logging.getLogger("urllib3").setLevel(logging.CRITICAL)
    with requests.request(
        request.method,
        request.url,
        data=request.body,
        headers=request.headers,
        timeout=(CONNECT_S, READ_S),
        allow_redirects=False,
        stream=True,
    ) as response:
        return response.status_code, dict(response.headers), _read(response)


def _read(response: Response) -> bytes:
    """The body, no longer than a service's answer is. Raises TimeoutError for one that drips."""
    until, body = time.monotonic() + READ_S, b""
    for chunk in response.iter_content(4096):
        body += chunk
        if len(body) >= ANSWER_BYTES:
            break
        if time.monotonic() > until:
            raise TimeoutError
    return body


def _clock_note(headers: dict[str, str], now_s: float) -> str:
    """Behind a refusal: how far this clock is off by the service's own; empty where it is right."""
    told = next((value for name, value in headers.items() if name.lower() == "date"), "")
    try:
        theirs: datetime = parsedate_to_datetime(told)
        ahead_s = now_s - theirs.timestamp()
    except (TypeError, ValueError, OverflowError):
        return ""
    if abs(ahead_s) < _CLOCK_OFF_S:
        return ""
    side = "ahead of" if ahead_s > 0 else "behind"
    return f" (the clock here is {abs(ahead_s) / 60:.0f} min {side} the service's)"
