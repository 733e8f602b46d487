"""What all chat services have: an endpoint, a request, an answer, a size and a rate. Pure.

A URL, a token and a chat's number are secrets: none is in a repr, and `without_secrets` takes them
out of what a service answers, because some services repeat them.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any
from urllib.parse import unquote, urlsplit

from boxcar.shared.disk import digest
from boxcar.shared.record import dataclass

# The channel of events for a program, signed as Standard Webhooks are.
WEBHOOK = "webhook"
# What is read of an answer, and what is told of one.
ANSWER_BYTES = 65_536
_TOLD = 300
_GONE = "…"
# A shorter part of a URL is a word such as `bot` or `send`, and no secret.
_SECRET_CHARACTERS = 8
# Nobody waits longer because a service asks for it; a limit over more is one of a day.
_LONGEST_S = 3600.0


@dataclass(frozen=True)
class Endpoint:
    """One robot. `secret` signs, or is the token; `to` is a chat, where a token serves several."""

    channel: str
    url: str = field(repr=False)
    secret: str = field(default="", repr=False)
    to: str = field(default="", repr=False)


def key_of(endpoint: Endpoint) -> str:
    """What its cursor is kept under. Of the service, its address and the one who gets it: two chats
    may share a URL. A webhook's is of its URL alone.
    """
    if endpoint.channel == WEBHOOK:
        return digest.of_bytes(endpoint.url.encode())
    token = endpoint.secret if endpoint.to else ""
    parts = (endpoint.channel, endpoint.url, token, endpoint.to)
    return digest.of_bytes("\0".join(parts).encode())


@dataclass(frozen=True)
class Request:
    method: str
    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Taken:
    """The service says itself that it has the message."""


@dataclass(frozen=True)
class Later:
    """It may be better next time; not before so many seconds, where the service says so."""

    why: str
    retry_after_s: float = 0.0


@dataclass(frozen=True)
class Refused:
    """The service says no, in its own words."""

    why: str


Answer = Taken | Later | Refused


def post(url: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Request:
    content = json.dumps(body, separators=(",", ":")).encode()
    head = {"content-type": "application/json; charset=utf-8", "user-agent": "boxcar"}
    return Request("POST", url, {**head, **(headers or {})}, content)


def not_now(status: int, headers: Mapping[str, str], body: bytes) -> Later | Refused | None:
    """What the status alone says; None for a 2xx, of which the body decides."""
    if 200 <= status < 300:
        return None
    told = words(status, body)
    if status in (408, 425, 429) or status >= 500 or status < 400:
        return Later(told, asked_s(headers, body))
    return Refused(told)


def document(body: bytes) -> dict[str, Any]:
    """The answer's JSON object; empty where it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def by_code(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    keys: tuple[str, ...],
    good: object,
    busy: tuple[object, ...] = (),
) -> Answer:
    """The answer of a service that says in its body what came of it, under the first of `keys`."""
    if found := not_now(status, headers, body):
        return found
    told = document(body)
    key = next((key for key in keys if key in told), None)
    if key is None:
        return Later(f"answered {status}, but not as the service does: a captive portal?")
    code = told[key]
    if code == good and type(code) is type(good):
        return Taken()
    why = words(status, body)
    is_busy = code in busy or _asked_in_body_s(body) > 0
    return Later(why, asked_s(headers, body)) if is_busy else Refused(why)


def by_status(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The answer of one whose 2xx took the message, unless its body says no."""
    if found := not_now(status, headers, body):
        return found
    if is_web_page(body):
        return Later(f"answered {status} with a web page: a captive portal?")
    told = document(body)
    # A message has an id, an error a code; Slack's other doors answer 200 with `ok: false`.
    is_no = "error" in told or told.get("ok", True) is not True
    return (
        Refused(words(status, body)) if is_no or ("code" in told and "id" not in told) else Taken()
    )


def is_web_page(body: bytes) -> bool:
    """A captive portal says 200 with its own page to everything."""
    return body.lstrip().startswith(b"<")


def header(headers: Mapping[str, str], name: str) -> str:
    return next((value for known, value in headers.items() if known.lower() == name), "")


def asked_s(headers: Mapping[str, str], body: bytes = b"") -> float:
    """Seconds to wait, by the body or a Retry-After, at most an hour; 0 where nothing says it."""
    asked = _asked_in_body_s(body) or _retry_after_s(header(headers, "retry-after").strip())
    return max(0.0, min(asked, _LONGEST_S))


def _retry_after_s(value: str) -> float:
    """Seconds, or a date."""
    if value.isascii() and value.isdigit():
        return float(value[:9])
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(value).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _asked_in_body_s(body: bytes) -> float:
    """Discord says it at the top, Telegram among its parameters."""
    told = document(body)
    below = told.get("parameters")
    asked = below.get("retry_after") if isinstance(below, dict) else told.get("retry_after")
    return float(asked) if isinstance(asked, (int, float)) else 0.0


def words(status: int, body: bytes) -> str:
    """The service's own words in one line, all of them: who tells them takes the secrets out."""
    text = "".join(c if c.isprintable() else " " for c in body.decode("utf-8", "replace"))
    told = " ".join(text.split())
    return f"answered {status}: {told}" if told else f"answered {status}"


def without_secrets(text: str, endpoint: Endpoint) -> str:
    """What may be told of `text`, cut to what a person reads. The cut comes last: half a secret is
    one too.
    """
    for secret in _spellings(endpoint):
        text = text.replace(secret, _GONE)
    return text if len(text) <= _TOLD else f"{text[:_TOLD]}…"


def _spellings(endpoint: Endpoint) -> list[str]:
    """Each secret as a service may repeat it, the longest first."""
    parts = urlsplit(endpoint.url)
    pieces = {*parts.path.split("/"), *parts.query.replace("=", "&").split("&")}
    pieces = {piece for piece in pieces if len(piece) >= _SECRET_CHARACTERS}
    login = {parts.username or "", parts.password or ""}
    secrets = {endpoint.url, endpoint.secret, endpoint.to, *login, *pieces}
    plain = {spelled for secret in secrets for spelled in (secret, unquote(secret))}
    escaped = {secret.replace("/", "\\/") for secret in plain}
    quoted = {json.dumps(secret)[1:-1] for secret in plain}
    return sorted((plain | escaped | quoted) - {""}, key=len, reverse=True)


def title(text: str, longest: int) -> str:
    """The first line, in `longest` characters."""
    line = text.split("\n", maxsplit=1)[0]
    return line if len(line) <= longest else line[: longest - 1] + _GONE


def within(text: str, size_bytes: int) -> str:
    """The text in so many bytes of UTF-8; what was cut ends in three dots."""
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair, from some log
    data = text.encode()
    if len(data) <= size_bytes:
        return text
    return data[: size_bytes - len(_GONE.encode())].decode("utf-8", "ignore") + _GONE


def wait_for_rate_s(
    rate: Sequence[tuple[int, float]], tries_s: Sequence[float], now_s: float
) -> float:
    """Seconds until one more try is within every limit of `rate`: so many in so many seconds.

    `tries_s` are the times of the earlier tries, in their order, on the clock of `now_s`.
    """
    waits = [0.0]
    for most, window_s in rate:
        if len(tries_s) >= most:
            # A clock that was set back makes no wait longer than the window.
            waits.append(min(window_s, tries_s[-most] + window_s - now_s))
    return max(waits)


def tries_that_count(rate: Sequence[tuple[int, float]], tries_s: Sequence[float]) -> list[float]:
    """The tries that a limit can still ask for."""
    return list(tries_s)[-max(most for most, _ in rate) :]


def share_of_rate(rate: Sequence[tuple[int, float]], queues: int) -> tuple[tuple[int, float], ...]:
    """One queue's part of a rate that so many queues may use at once, without asking each other.

    A limit of a day is not parted: a queue has little to say in one, and must not wait for days.
    """
    return tuple(
        (most, window_s) if window_s > _LONGEST_S else _part(most, window_s, max(1, queues))
        for most, window_s in rate
    )


def _part(most: int, window_s: float, queues: int) -> tuple[int, float]:
    if queues <= most:
        return most // queues, window_s
    return 1, window_s * math.ceil(queues / most)
