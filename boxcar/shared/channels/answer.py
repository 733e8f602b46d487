"""What goes to a chat service and what came of it. Pure.

A URL, a token and a chat's number are secrets: none is in a repr, and `without_secrets` takes them
out of what a service answers, because some services repeat them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
        return Later(told, asked_s(headers))
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
    key: str,
    good: object,
    later: tuple[object, ...] = (),
) -> Answer:
    """The answer of a service that says in its body, under `key`, what came of it."""
    if found := not_now(status, headers, body):
        return found
    told = document(body)
    if key not in told:
        return Later(f"answered {status}, but not as the service does: a captive portal?")
    code = told[key]
    if code == good and type(code) is type(good):
        return Taken()
    why = words(status, body)
    return Later(why, asked_s(headers)) if code in later else Refused(why)


def is_web_page(body: bytes) -> bool:
    """A captive portal says 200 with its own page to everything."""
    return body.lstrip().startswith(b"<")


def asked_s(headers: Mapping[str, str]) -> float:
    """Seconds of a Retry-After; 0 where it is a date or nothing."""
    value = next((v for name, v in headers.items() if name.lower() == "retry-after"), "")
    try:
        return max(0.0, min(float(value), 86_400.0))
    except ValueError:
        return 0.0


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
