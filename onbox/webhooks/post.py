"""One message to one endpoint, once: TLS verified, redirects not followed, bounded in time.

A webhook's event is signed anew for each try (Standard Webhooks), with its id on every one. A URL
is as secret as its secret: neither gets into a log, an error or a repr.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from boxcar.shared.channels import answer, dead_man, known
from boxcar.shared.channels.answer import (
    ANSWER_BYTES,
    WEBHOOK,
    Answer,
    Endpoint,
    Later,
    Refused,
    Request,
    Taken,
    without_secrets,
    words,
)
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire.webhook_secret import BODY_BYTES

if TYPE_CHECKING:
    from requests import Response
    from urllib3.util import Retry

CONNECT_S = 5.0
READ_S = 15.0
LONGEST_BACKOFF_S = 300.0
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

    @property
    def clock_note(self) -> str:
        """Empty where the clock is right, or where nobody knows."""
        if self.ahead_s is None or abs(self.ahead_s) < _CLOCK_OFF_S:
            return ""
        side = "ahead of" if self.ahead_s > 0 else "behind"
        return f" (the clock here is {abs(self.ahead_s) / 60:.0f} min {side} the service's)"


def post_once(
    endpoint: Endpoint, news: str | Event, clock: Callable[[], float] = time.time
) -> Posted:
    """A chat gets a text, a webhook an event, a dead-man's service a sign of life. Behind a
    refusal stands how far the clock is off.
    """
    now_s = clock()
    try:
        status, headers, body = _send(_request(endpoint, news, now_s))
    except Exception as error:
        # Whatever it is, it is tried again; the message may hold the URL, so only its type is told.
        why = _why_not_sent(error)
        return Posted(Later(why), why)
    found, said = _taken(endpoint, status, headers, body), words(status, body)
    said = without_secrets(said if isinstance(found, Taken) else found.why, endpoint)
    posted = Posted(found, said, status, _ahead_s(headers, now_s))
    if isinstance(found, Refused):
        return replace(posted, answer=Refused(said + posted.clock_note))
    return posted if isinstance(found, Taken) else replace(posted, answer=replace(found, why=said))


def _request(endpoint: Endpoint, news: str | Event, now_s: float) -> Request:
    if endpoint.channel == dead_man.HEARTBEAT:
        return dead_man.request(endpoint)
    if isinstance(news, str):
        return known.CHANNELS[endpoint.channel].request(endpoint, news, now_s)
    content = body(news)
    return Request("POST", endpoint.url, _headers(endpoint, news, content), content)


def _taken(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    if endpoint.channel == dead_man.HEARTBEAT:
        return dead_man.taken(status, headers, body)
    if endpoint.channel != WEBHOOK:
        return known.CHANNELS[endpoint.channel].taken(status, headers, body)
    if found := answer.not_now(status, headers, body):
        return found
    # A captive portal says 200 with its own page to everything; with TLS it cannot.
    media = answer.header(headers, "content-type").lower()
    if (
        ("html" in media or not media)
        and not endpoint.url.startswith("https:")
        and answer.is_web_page(body)
    ):
        return Later(f"answered {status} with a web page: a captive portal?")
    return Taken()


def _send(request: Request) -> tuple[int, dict[str, str], bytes]:
    import logging
    import warnings

    # It misses what guesses the encoding of a text; we take bytes.
    warnings.filterwarnings("ignore", "Unable to find acceptable character detection")
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
    try:
        return now_s - parsedate_to_datetime(answer.header(headers, "date")).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _why_not_sent(error: BaseException) -> str:
    if type(error).__name__ != "ProxyError":
        return kind(error)
    return _("the proxy in https_proxy or http_proxy does not answer: {error}", error=kind(error))


def kind(error: BaseException) -> str:
    """The type of an error and that of its first cause, such as `SSLError (SSLCertVerif…)`."""
    cause = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = deeper
    outer, inner = type(error).__name__, type(cause).__name__
    return outer if cause is error else f"{outer} ({inner})"


# --- how long to wait after a failure


def first_patience() -> Retry:
    """The back-off of one event, before its first failure. The calculator only; nothing retries."""
    from urllib3.util import Retry

    # Counted as one failure already: urllib3 would try again at once after the first.
    return Retry(
        total=None, backoff_factor=0.5, backoff_jitter=1.0, backoff_max=LONGEST_BACKOFF_S
    ).increment()


def next_patience(patience: Retry, asked_s: float) -> tuple[Retry, float]:
    """The back-off after one more failure, and the seconds to wait now: `asked_s` at least."""
    # At the longest wait counting stops: 2**1024 is no float, and that is 3.5 days of failures.
    if patience.get_backoff_time() < LONGEST_BACKOFF_S:
        patience = patience.increment()
    return patience, max(patience.get_backoff_time(), asked_s)


# --- a webhook's event


def body(event: Event) -> bytes:
    """The JSON that is sent, under BODY_BYTES. A text that is too long is cut, and says so."""
    for longest in (BODY_BYTES, 2_000, 200):
        spelled = _spell(event, _fit(event.data, longest))
        if len(spelled) < BODY_BYTES:
            return spelled
    about = {
        name: event.data[name] for name in ("run", "queue", "box", "cell") if name in event.data
    }
    cut = f"too long for a webhook; it is event {event.seq} of the queue's journal"
    return _spell(event, _fit(about, 200) | {"cut": cut})


def _headers(endpoint: Endpoint, event: Event, content: bytes) -> dict[str, str]:
    from standardwebhooks import Webhook as Signer

    # Aware and in UTC: the library takes the digits as UTC whatever the zone.
    now = datetime.now(timezone.utc)
    signature = Signer(endpoint.secret).sign(event.id, now, content.decode())
    return {
        "content-type": "application/json",
        "user-agent": "boxcar",
        "webhook-id": event.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signature,
    }


def _spell(event: Event, data: Any) -> bytes:
    # ASCII: its size is known, and half a surrogate pair from a log cannot break the encoding.
    head = {"type": event.type, "timestamp": event.at, "data": data}
    return json.dumps(head, separators=(",", ":"), allow_nan=False).encode()


def _fit(value: Any, longest: int) -> Any:
    """The value with texts cut to `longest` characters, and as JSON that every reader takes."""
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]}… (cut from {len(value)} characters)"
    if isinstance(value, float) and not math.isfinite(value):
        # A loss that became NaN is what people want to hear of, and JSON has no NaN.
        return str(value)
    if isinstance(value, Mapping):
        return {key: _fit(item, longest) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_fit(item, longest) for item in value]
    return value
