"""One event to one endpoint, once: what is sent, what the answer means, how long to wait after it.

Standard Webhooks: signed anew for each try, with the event's id on every one. A URL is as secret as
its secret: neither gets into a log, an error or a repr.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timezone
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from boxcar.shared.channels.answer import Request
from boxcar.shared.files import journal
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import dataclass
from boxcar.shared.wire.webhook_event import BODY_BYTES
from onbox.machine.credentials import Webhook

if TYPE_CHECKING:
    from requests import Response
    from urllib3.util import Retry

CONNECT_S = 5.0
READ_S = 15.0
LONGEST_BACKOFF_S = 300.0
LONGEST_RETRY_AFTER_S = 3600.0


class Step(Enum):
    """What follows from one try."""

    DELIVERED = auto()
    DISABLE = auto()
    RETRY = auto()


@dataclass(frozen=True)
class Answer:
    """What one try brought: a status, or the problem that kept it from getting one."""

    status: int | None
    problem: str | None = None
    retry_after: str | None = None


def is_public(event: Event) -> bool:
    return event.type in journal.PUBLIC_TYPES


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


def after(answer: Answer) -> Step:
    """Any 2xx took the event, 410 wants no more, and everything else may be better next time."""
    if answer.problem is None:
        return Step.DELIVERED
    return Step.DISABLE if answer.status == 410 else Step.RETRY


def first_patience() -> Retry:
    """The back-off of one event, before its first failure. The calculator only; nothing retries."""
    from urllib3.util import Retry

    # Counted as one failure already: urllib3 would try again at once after the first.
    return Retry(
        total=None, backoff_factor=0.5, backoff_jitter=1.0, backoff_max=LONGEST_BACKOFF_S
    ).increment()


def next_patience(patience: Retry, retry_after: str | None) -> tuple[Retry, float]:
    """The back-off after one more failure, and the seconds to wait now."""
    # At the longest wait counting stops: 2**1024 is no float, and that is 3.5 days of failures.
    if patience.get_backoff_time() < LONGEST_BACKOFF_S:
        patience = patience.increment()
    return patience, max(patience.get_backoff_time(), _asked_s(patience, retry_after))


def post(webhook: Webhook, event: Event) -> Answer:
    """One try: signed for now, TLS verified, redirects not followed, the box's proxies used."""
    import logging

    import requests

    # Its warnings show the whole URL, and without a handler they go to the agent's log.
    logging.getLogger("urllib3").setLevel(logging.CRITICAL)
    asked = request(webhook, event)
    try:
        with requests.post(
            asked.url,
            data=asked.body,
            headers=asked.headers,
            timeout=(CONNECT_S, READ_S),
            allow_redirects=False,
            stream=True,
        ) as response:
            return _read_answer(response)
    except Exception as error:
        # Whatever it is, it is tried again; the message may hold the URL, so only its type is told.
        return Answer(None, kind(error))


def request(webhook: Webhook, event: Event) -> Request:
    """The event as it is posted, signed for now."""
    content = body(event)
    return Request("POST", webhook.url, _headers(webhook, event, content), content)


def _headers(webhook: Webhook, event: Event, content: bytes) -> dict[str, str]:
    from standardwebhooks import Webhook as Signer

    # Aware and in UTC: the library takes the digits as UTC whatever the zone.
    now = datetime.now(timezone.utc)
    signature = Signer(webhook.secret).sign(event.id, now, content.decode())
    return {
        "content-type": "application/json",
        "user-agent": "boxcar",
        "webhook-id": event.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signature,
    }


def _read_answer(response: Response) -> Answer:
    status = response.status_code
    if not 200 <= status < 300:
        return Answer(status, f"answered {status}", response.headers.get("retry-after"))
    if _is_web_page(response):
        return Answer(status, f"answered {status} with a web page: a captive portal?")
    return Answer(status)


def _is_web_page(response: Response) -> bool:
    """A captive portal says 200 with its own page to everything; with TLS it cannot."""
    is_html = "html" in response.headers.get("content-type", "").lower()
    if response.url.startswith("https:") or not is_html:
        return False
    return bool(next(response.iter_content(64), b"").lstrip().startswith(b"<"))


def _asked_s(patience: Retry, retry_after: str | None) -> float:
    """The seconds that a Retry-After asks for, as a number or a date; 0 where it says nothing."""
    from urllib3.exceptions import InvalidHeader

    try:
        seconds = patience.parse_retry_after(retry_after) if retry_after else 0.0
    except (InvalidHeader, ValueError, OverflowError):
        return 0.0
    return min(seconds, LONGEST_RETRY_AFTER_S)


def kind(error: BaseException) -> str:
    """The type of an error and that of its first cause, such as `SSLError (SSLCertVerif…)`."""
    cause = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = deeper
    outer, inner = type(error).__name__, type(cause).__name__
    return outer if cause is error else f"{outer} ({inner})"


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
