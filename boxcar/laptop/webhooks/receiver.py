"""A receiver of webhooks on this machine: checks every signature, hands each event on once.

Nothing is shown, and nothing remembered, before its signature holds. Not covered: TLS, and more
than one secret. Behind a tunnel or a reverse proxy it serves boxes elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import re
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

from boxcar.laptop.common import units
from boxcar.laptop.common.text_layout import plain
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire import webhook_secret
from boxcar.shared.wire.webhook_secret import BODY_BYTES

# A client that says nothing for so long is cut off.
SILENT_S = 15.0
_METRICS_ON_A_LINE = 3
# Read and thrown away, so that a client with too much to say hears the answer and not a reset.
_DISCARDED_BYTES = 1_000_000
# 32 bytes in base64 have one spelling that ends in zero bits; decoders take three others too.
_SIGNATURE = re.compile(r"v1,[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=")
_SECONDS = re.compile(r"[1-9][0-9]{0,10}")
# What a line shows by itself, or what only programs read.
_NOT_ON_A_LINE = frozenset(
    {"run", "queue", "box", "cell", "cfg", "task", "manifest_sha256", "release", "pid", "python"}
    | {"metric_notes", "saying"}
)


@dataclass(frozen=True)
class Notification:
    """One verified event. `id` is the same on every try."""

    id: str
    type: str
    at: str
    data: dict[str, Any]

    def line(self) -> str:
        """The event as people read it: local time, type, queue, cell, what is interesting."""
        at = timestamp.parse_utc(self.at).astimezone().strftime("%H:%M:%S")
        names = [str(self.data[name]) for name in ("queue", "cell") if name in self.data]
        words = [_one_line(word) for word in (self.type, *names, *_facts(self.data))]
        return "  ".join([at, words[0].ljust(13), *words[1:]])


class Nonsense(Exception):
    """A request that is no event of Boxcar, whatever its signature."""


@contextlib.contextmanager
def serve(
    port: int,
    secret: str,
    on_event: Callable[[Notification], None],
    say: Callable[[str], None],
) -> Iterator[Receiver]:
    """A receiver at 127.0.0.1 while the block runs; port 0 takes a free one. Raises InputError.

    `on_event` is called once for each event, never twice at the same time; what it raises is
    answered with 500, and the sender tries again. `say` hears of requests that were refused.
    """
    webhook = verifier(secret)
    try:
        receiver = Receiver(port, webhook, on_event, say)
    except (OSError, OverflowError) as error:
        raise InputError(
            _(
                "cannot listen on 127.0.0.1:{port}: {error}. Choose another port with --port",
                port=port,
                error=error,
            )
        ) from error
    receiver.thread.start()
    try:
        yield receiver
    finally:
        receiver.shutdown()
        receiver.server_close()


def make_secret() -> str:
    return webhook_secret.PREFIX + base64.b64encode(secrets.token_bytes(24)).decode()


def kept_secret(path: Path) -> str:
    """The one that agents were told before, or a new one that is kept from now on, in a file of its
    own that only its owner can read. Raises OSError.
    """
    if path.exists() and (kept := path.read_text().strip()):
        return kept
    made = make_secret()
    atomic.make_folder(path.parent)
    atomic.write_whole(path, f"{made}\n".encode(), mode=0o600)
    return made


def verifier(secret: str) -> Webhook:
    """The library's verifier of a secret; raises InputError for one that is not base64."""
    try:
        return Webhook(webhook_secret.key(secret))
    except ValueError as error:
        raise InputError(
            _("BOXCAR_WEBHOOK_SECRET: {error}. Unset it to get a new one", error=error)
        ) from None


def verified(webhook: Webhook, headers: Mapping[str, str], body: bytes) -> Notification:
    """The event in a request. Raises WebhookVerificationError, and Nonsense for no event."""
    by_name = {name.lower(): value for name, value in headers.items()}
    signatures = by_name.get("webhook-signature", "").split(" ")
    moment = by_name.get("webhook-timestamp", "")
    # Only these reach the library: it takes other spellings too, and some words make it raise.
    kept = {
        "webhook-id": by_name.get("webhook-id", ""),
        "webhook-timestamp": moment if _SECONDS.fullmatch(moment) else "",
        "webhook-signature": " ".join(word for word in signatures if _SIGNATURE.fullmatch(word)),
    }
    try:
        record = webhook.verify(body, kept)
    except (ValueError, RecursionError):
        raise Nonsense("the body is not JSON in UTF-8") from None
    return _notification(kept["webhook-id"], record)


class Receiver(ThreadingHTTPServer):
    """The server: one thread for each request, events handed on one at a time."""

    def __init__(
        self,
        port: int,
        webhook: Webhook,
        on_event: Callable[[Notification], None],
        say: Callable[[str], None],
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.webhook = webhook
        self._say = say
        self.received = 0
        self.duplicates = 0
        self.thread = threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True)
        self._on_event = on_event
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def take(self, event: Notification) -> None:
        """Hand an event on, unless it was seen. It counts as seen only when that went well."""
        with self._lock:
            if event.id in self._seen:
                self.duplicates += 1
                return
            self._on_event(event)
            self.received += 1
            self._seen.add(event.id)

    def refused(self, reason: str) -> None:
        """Never with anything that came with the request: it is not verified."""
        self._say(f"refused a request: {reason}")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.refused(type(error).__name__)


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    timeout = SILENT_S

    def do_POST(self) -> None:
        status, reason = self._status()
        if reason:
            self.server.refused(reason)
        self.send_response_only(status)
        self.send_header("Connection", "close")
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the request line is not verified."""

    def _status(self) -> tuple[int, str]:
        """What to answer, and what to say where the request was refused."""
        length = self.headers.get("content-length", "")
        if not re.fullmatch(r"[0-9]{1,9}", length):
            return 400, "it does not say how long it is"
        if int(length) > BODY_BYTES:
            self.rfile.read(min(int(length), _DISCARDED_BYTES))
            return 413, f"it is larger than {BODY_BYTES} bytes"
        try:
            body, headers = self._body(int(length)), dict(self.headers.items())
            self.server.take(verified(self.server.webhook, headers, body))
        except WebhookVerificationError as error:
            return 401, f"{error}. Compare secrets and clocks"
        except Nonsense as error:
            return 400, str(error)
        except Exception as error:
            return 500, f"an event could not be shown: {type(error).__name__}"
        return 204, ""

    def _body(self, length: int) -> bytes:
        try:
            body = self.rfile.read(length)
        except TimeoutError:
            body = b""
        if len(body) < length:
            raise Nonsense("it broke off")
        return body


def _notification(id: str, record: object) -> Notification:
    if not isinstance(record, dict):
        raise Nonsense("the body is not an object")
    type, at, data = (record.get(name) for name in ("type", "timestamp", "data"))
    if not (isinstance(type, str) and isinstance(at, str) and isinstance(data, dict)):
        raise Nonsense("the body has no type, timestamp and data")
    try:
        timestamp.parse_utc(at)
    except ValueError:
        raise Nonsense("its timestamp is not a UTC time") from None
    return Notification(id, type, at, data)


def _facts(data: Mapping[str, Any]) -> Iterator[str]:
    """The fields worth reading, those of an inner object by their own names."""
    for name, value in data.items():
        if name in _NOT_ON_A_LINE:
            continue
        if isinstance(value, Mapping):
            # The first few metrics are what the script put first.
            yield from itertools.islice(_facts(value), _METRICS_ON_A_LINE)
        elif (name, value) != ("attempt", 1):
            yield f"{name} {_short(value)}"


def _short(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return units.four_digits(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:99]}…"


def _one_line(text: str) -> str:
    return plain(" ".join(text.split())) or "-"
