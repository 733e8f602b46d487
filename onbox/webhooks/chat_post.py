"""One message to one chat service, once: TLS verified, redirects not followed, bounded in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
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
    words,
)
from boxcar.shared.record import dataclass
from onbox.webhooks.post import CONNECT_S, READ_S, kind

if TYPE_CHECKING:
    from requests import Response

# Signed services refuse what is more than an hour off, and the others do not care.
_CLOCK_OFF_S = 300.0


@dataclass(frozen=True)
class Posted:
    """What came of one message. No secret is in it.

    `said` is the service's own answer, or why there was none. `ahead_s`: how far the clock here is
    ahead of the service's, where its answer says the time.
    """

    answer: Answer
    said: str
    status: int | None = None
    ahead_s: float | None = None


def post(endpoint: Endpoint, text: str, clock: Callable[[], float] = time.time) -> Answer:
    """What the service says of this message; behind a refusal how far the clock here is off."""
    posted = post_once(endpoint, text, clock)
    if isinstance(posted.answer, Refused):
        return replace(posted.answer, why=posted.said + _clock_note(posted.ahead_s))
    return posted.answer


def post_once(endpoint: Endpoint, text: str, clock: Callable[[], float] = time.time) -> Posted:
    channel = known.channel(endpoint.channel)
    now_s = clock()
    return send_once(
        endpoint, lambda: channel.request(endpoint, text, now_s), channel.taken, lambda: now_s
    )


def send_once(
    endpoint: Endpoint,
    request: Callable[[], Request],
    taken: Callable[[int, Mapping[str, str], bytes], Answer],
    clock: Callable[[], float] = time.time,
) -> Posted:
    """Send what `request` makes, and judge its answer by `taken`."""
    now_s = clock()
    try:
        status, headers, body = _send(request())
    except Exception as error:
        # Whatever it is, it is tried again; the message may hold the URL, so only its type is told.
        return Posted(Later(kind(error)), kind(error))
    answer, said = taken(status, headers, body), words(status, body)
    if isinstance(answer, (Later, Refused)):
        said = answer.why
        answer = replace(answer, why=without_secrets(said, endpoint))
    return Posted(answer, without_secrets(said, endpoint), status, _ahead_s(headers, now_s))


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


def _ahead_s(headers: Mapping[str, str], now_s: float) -> float | None:
    told = next((value for name, value in headers.items() if name.lower() == "date"), "")
    try:
        return now_s - parsedate_to_datetime(told).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _clock_note(ahead_s: float | None) -> str:
    """Empty where the clock is right, or where nobody knows."""
    if ahead_s is None or abs(ahead_s) < _CLOCK_OFF_S:
        return ""
    side = "ahead of" if ahead_s > 0 else "behind"
    return f" (the clock here is {abs(ahead_s) / 60:.0f} min {side} the service's)"
