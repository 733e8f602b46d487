"""Calls of a provider's API over HTTP: bounded, not redirected, and without the key in any word.

A call that changes nothing when repeated is repeated at 429, 5xx and a cut line, with the waits the
service asks for or our own. A create is never repeated here. What came is JSON, or it is doubt.
"""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests

from boxcar import __version__
from boxcar.laptop.common.text_layout import plain
from boxcar.laptop.providers.provider import Access, Doubt, NoRights
from boxcar.shared.errors import InputError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

CONNECT_TIMEOUT_S, READ_TIMEOUT_S, WHOLE_TIMEOUT_S = 10.0, 60.0, 120.0
MOST_BYTES = 16 * 1024 * 1024
# Of a log: what a stream without an end says meanwhile, and no more of it.
LOG_S, LOG_BYTES, LOG_LINES = 8.0, 256 * 1024, 500
# The pauses between tries of what may be repeated.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 15.0)
LONGEST_PAUSE_S = 60.0
_SAID_CHARS = 200


@dataclass(frozen=True)
class Clock:
    """Where all waits of this room come from; tests have one that does not wait."""

    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


CLOCK = Clock()


@dataclass(frozen=True)
class Answer:
    """`document`: a JSON object, {} where none was sent. `date`: the service's own clock."""

    status: int
    document: Mapping[str, Any]
    date: str = ""

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300


class _Header(requests.auth.AuthBase):
    """Given as `auth`, so that no ~/.netrc takes its place."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = self.value
        return request


class Calls:
    """One account's. `scheme` stands before the key in its header."""

    def __init__(
        self, title: str, access: Access, *, scheme: str = "Bearer ", pace_s: float = 0.0
    ) -> None:
        self.title, self.access = title, access
        self._auth = _Header(scheme + access.key)
        self._pace_s, self._called_s = pace_s, float("-inf")
        self._session = requests.Session()
        # A proxy of the person's is not asked for what is on this machine.
        self._session.trust_env = urlsplit(access.base).scheme == "https"
        self._session.headers["User-Agent"] = f"boxcar-run/{__version__}"

    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Answer:
        """What may be repeated. Raises Doubt, NoRights; every other status is the caller's."""
        for pause_s in (*PAUSES_S, None):
            try:
                answer = self.ask_once(method, path, params=params, body=body)
            except Doubt:
                if pause_s is None:
                    raise
                CLOCK.sleep(pause_s)
                continue
            if answer.status != 429 and answer.status < 500:
                self.check_rights(answer)
                return answer
            if pause_s is None:
                break
            CLOCK.sleep(_asked_pause_s(answer, pause_s))
        raise Doubt(
            _(
                "{title} answers {status} again and again{said}",
                title=self.title,
                status=answer.status,
                said=self.said(answer),
            )
        )

    def ask_once(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Send it once, whatever its status. Raises Doubt where nobody knows what came of it."""
        if (left_s := self._called_s + self._pace_s - CLOCK.now_s()) > 0:
            CLOCK.sleep(left_s)
        self._called_s = CLOCK.now_s()
        try:
            with self._session.request(
                method,
                self.access.base + path,
                params=params,
                json=body,
                auth=self._auth,
                timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S),
                allow_redirects=False,
                stream=True,
            ) as response:
                return self._answer(response)
        except requests.RequestException as error:
            # Not `from error`: a request within it holds the key.
            raise Doubt(self._cut(error)) from None

    def read_stream(self, path: str, params: Mapping[str, str]) -> bytes:
        """What a stream says within LOG_S, at most LOG_BYTES. Raises Doubt where it says no."""
        url = self.access.base + path
        try:
            with self._session.get(url, params=params, auth=self._auth, **_STREAMED) as response:
                if response.status_code == 200:
                    return _read_for_a_while(response)
        except requests.RequestException as error:
            raise Doubt(self._cut(error)) from None
        raise Doubt(_("{title} answers {status}", title=self.title, status=response.status_code))

    def read_elsewhere(self, url: str) -> bytes:
        """What comes to lie, within LOG_S, at an address that the service named; without the key.
        b"" where nothing does.
        """
        is_here = self.access.base.startswith("http://127.0.0.1:")
        if urlsplit(url).scheme != "https" and not (is_here and url.startswith(self.access.base)):
            return b""
        for _look in range(int(LOG_S)):
            CLOCK.sleep(1.0)
            # An auth that adds nothing, lest ~/.netrc be asked for one.
            with (
                contextlib.suppress(requests.RequestException),
                requests.get(url, auth=lambda request: request, **_STREAMED) as response,
            ):
                if response.status_code == 200:
                    return _read_for_a_while(response)
        return b""

    def check_rights(self, answer: Answer) -> None:
        """Raises NoRights where the key is not taken."""
        if answer.status in (401, 403):
            raise NoRights(
                _(
                    "{title} does not take this key, or the key lacks the right ({status}{said})",
                    title=self.title,
                    status=answer.status,
                    said=self.said(answer),
                )
            )

    def expect(self, answer: Answer, name: str, kind: type) -> Any:
        """A field of a good answer. Raises Doubt for any other status, or where it is not there."""
        found = answer.document.get(name)
        if answer.is_good and isinstance(found, kind):
            return found
        raise Doubt(
            _(
                "{title}: expected {name!r} in the answer, found status {status}{said}",
                title=self.title,
                name=name,
                status=answer.status,
                said=self.said(answer),
            )
        )

    def said(self, answer: Answer) -> str:
        """`: what the service said`, of the fields that contracts name, and short; else ''."""
        document = answer.document
        inner = document.get("error")
        fields = inner if isinstance(inner, Mapping) else document
        words = [fields.get(name) for name in ("code", "message", "msg", "detail")]
        if isinstance(inner, str):
            words.insert(0, inner)
        text = ": ".join(dict.fromkeys(word for word in words if isinstance(word, str) and word))
        return _(": {words}", words=self.clean(text)) if text else ""

    def clean(self, text: str) -> str:
        """Others' words for a person: short, on one line, and without the key."""
        text = text.replace(self.access.key, "…") if self.access.key else text
        return plain(" ".join(text.split()))[:_SAID_CHARS]

    def _answer(self, response: requests.Response) -> Answer:
        data = self._bytes(response)
        if 300 <= response.status_code < 400:
            raise Doubt(
                _("{title} answers with a redirect, which is not followed", title=self.title)
            )
        document = self._document(response, data)
        answer = Answer(
            response.status_code,
            document,
            response.headers.get("Date", ""),
        )
        if wait := response.headers.get("Retry-After"):
            return Answer(answer.status, {**document, "retry_after": wait}, answer.date)
        return answer

    def _bytes(self, response: requests.Response) -> bytes:
        """All of the body. Raises Doubt for one without end, in size or in time."""
        until_s, data = time.monotonic() + WHOLE_TIMEOUT_S, bytearray()
        for part in response.iter_content(64 * 1024):
            data += part
            if len(data) > MOST_BYTES or time.monotonic() > until_s:
                raise Doubt(_("{title} answers without end", title=self.title))
        return bytes(data)

    def _document(self, response: requests.Response, data: bytes) -> Mapping[str, Any]:
        """Raises Doubt for a yes that is no JSON object; what comes with an error may be any."""
        if not data.strip() and response.status_code == 204:
            return {}
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(data)
            if isinstance(found, dict):
                return found
        if 200 <= response.status_code < 300:
            kind = self.clean(response.headers.get("Content-Type", "")) or _("no type")
            raise Doubt(
                _(
                    "{title} answers {status} without JSON ({kind}): is a proxy or a login page in "
                    "between?",
                    title=self.title,
                    status=response.status_code,
                    kind=kind,
                )
            )
        return {}

    def _cut(self, error: requests.RequestException) -> str:
        host = urlsplit(self.access.base).hostname or ""
        if isinstance(error, requests.exceptions.SSLError) or isinstance(
            error.__context__, ssl.SSLError
        ):
            return _(
                "{title}: the certificate of {host} does not hold. This machine's clock says "
                "{now}; is that right?",
                title=self.title,
                host=host,
                now=time.strftime("%Y-%m-%d %H:%M"),
            )
        return _(
            "{title}: no answer from {host} ({kind})",
            title=self.title,
            host=host,
            kind=type(error).__name__,
        )


_STREAMED: Mapping[str, Any] = {
    "timeout": (CONNECT_TIMEOUT_S, LOG_S),
    "allow_redirects": False,
    "stream": True,
}


def _read_for_a_while(response: requests.Response) -> bytes:
    """Its first bytes; a stream that falls silent has said what it has."""
    until_s, data = time.monotonic() + LOG_S, bytearray()
    with contextlib.suppress(requests.RequestException):
        for part in response.iter_content(None):
            data += part
            if len(data) >= LOG_BYTES or time.monotonic() > until_s:
                break
    return bytes(data[:LOG_BYTES])


def _asked_pause_s(answer: Answer, usual_s: float) -> float:
    """What the service asks for in seconds; a date there, or nonsense, counts for nothing."""
    asked = answer.document.get("retry_after")
    with contextlib.suppress(TypeError, ValueError):
        return min(LONGEST_PAUSE_S, max(usual_s, float(asked)))  # type: ignore[arg-type]
    return usual_s


def check_base(variable: str, usual: str, environ: Mapping[str, str] = os.environ) -> str:
    """The API's address: the usual, or that of the variable. Raises InputError.

    From the environment alone: a job or profile may be a stranger's, and the key goes there.
    """
    base = environ.get(variable, "").strip().rstrip("/") or usual
    try:
        parts = urlsplit(base)
        host, _port = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    is_here = host == "127.0.0.1" and parts.scheme == "http"
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment)
    if not host or not is_plain or not (parts.scheme == "https" or is_here):
        raise InputError(
            _("{variable}: expected an https address, or http://127.0.0.1:PORT", variable=variable)
        )
    return base
