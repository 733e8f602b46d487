"""Sends the journal's public events to the webhooks: at least once, in order, one id on every try.

The journal is the outbox and `delivered/<queue>.json` a cursor over it for each endpoint. The
cursor moves only after an endpoint took an event, so an agent that was killed in between sends it
again, with the same id. One thread for each endpoint: one that is down holds up no other. Whoever
uses this holds the queue's lock; it is not taken here.

A URL is as secret as its secret: neither gets into the cursor, a log, an error or a repr.

Not covered: a name server that hangs, and an answer that drips in byte by byte. Both hold up their
own endpoint only.
"""

from __future__ import annotations

import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxcar.formats import codec, delivered, digest, durable, journal, timestamp
from boxcar.formats.delivered import Cursor, Delivered
from boxcar.formats.errors import DamagedError
from boxcar.formats.journal import Event
from onbox.credentials import Webhook

if TYPE_CHECKING:
    from requests import Response
    from urllib3.util import Retry

BODY_BYTES = 20_000
CONNECT_S = 5.0
READ_S = 15.0
LONGEST_BACKOFF_S = 300.0
LONGEST_RETRY_AFTER_S = 3600.0
JOURNAL_AGAIN_S = 30.0

# Waits for a signal, at most so many seconds; tests replace it to see how long it would take.
Wait = Callable[[threading.Event, float], bool]


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
    content = body(event)
    try:
        with requests.post(
            webhook.url,
            data=content,
            headers=_headers(webhook, event, content),
            timeout=(CONNECT_S, READ_S),
            allow_redirects=False,
            stream=True,
        ) as response:
            return _read_answer(response)
    except Exception as error:
        # Whatever it is, it is tried again; the message may hold the URL, so only its type is told.
        return Answer(None, _kind(error))


class Deliverer:
    """The webhooks of one queue, as threads of the agent. Without webhooks it does nothing."""

    def __init__(
        self,
        journal: Path,
        cursor: Path,
        webhooks: Sequence[Webhook],
        *,
        wait: Wait = threading.Event.wait,
    ) -> None:
        self._journal = journal
        self._cursors = _Cursors(cursor)
        self._endpoints = [_Endpoint(one, journal, self._cursors, wait) for one in webhooks]

    def start(self) -> None:
        """Under the queue's lock. Raises DamagedError where the cursor cannot be read, OSError."""
        if self._endpoints and self._journal.exists():
            # A killed agent may have left what only memory held; a sent event has to outlast it.
            durable.sync_file(self._journal)
        self._cursors.load(_count_lines(self._journal))
        self.wake()
        for endpoint in self._endpoints:
            endpoint.thread.start()

    def wake(self) -> None:
        """The journal is durable up to here. For its writer, after each append."""
        if self._endpoints:
            end = self._journal.stat().st_size if self._journal.exists() else 0
            for endpoint in self._endpoints:
                endpoint.wake(end)

    def close(self, flush_s: float) -> None:
        """Give what is pending up to `flush_s` seconds, then stop; the rest stays in the journal.

        An endpoint that is backing off gets one more try at once. Nothing writes the cursor after
        this has returned.
        """
        deadline = time.monotonic() + flush_s
        for endpoint in self._endpoints:
            endpoint.close(deadline)
        for endpoint in self._endpoints:
            if endpoint.thread.is_alive():
                endpoint.thread.join(max(0.0, deadline - time.monotonic()))
        self._cursors.close()
        for endpoint in self._endpoints:
            endpoint.stop()

    def pending(self) -> int:
        """Events still to be taken, over all endpoints. Reads the whole journal."""
        public = [event.seq for event in journal.read(self._journal).events if is_public(event)]
        cursors = [self._cursors.of(endpoint.key) for endpoint in self._endpoints]
        return sum(seq > one.seq for one in cursors if not one.disabled for seq in public)

    def status(self) -> dict[str, dict[str, Any]]:
        """Each endpoint by a short digest of its URL: how far it is, and what its last try met."""
        return {
            digest.short(endpoint.key): {
                "seq": self._cursors.of(endpoint.key).seq,
                "disabled": self._cursors.of(endpoint.key).disabled,
                "problem": endpoint.problem,
            }
            for endpoint in self._endpoints
        }


def flush(journal: Path, cursor: Path, webhooks: Sequence[Webhook], flush_s: float) -> int:
    """Deliver what an agent left, for at most `flush_s` seconds; how many events are still left.

    Under the queue's lock, which the caller holds. Raises DamagedError.
    """
    deliverer = Deliverer(journal, cursor, webhooks)
    deliverer.start()
    deliverer.close(flush_s)
    return deliverer.pending()


class _Cursors:
    """`delivered/<queue>.json`, which the endpoints' threads share."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._delivered = Delivered({})
        self._lock = threading.Lock()
        self._is_closed = False

    def load(self, events: int) -> None:
        """A cursor beyond the journal's `events` is set back: the journal was cut, and goes on."""
        found = delivered.read(self._path)
        within = {
            key: replace(cursor, seq=min(cursor.seq, events))
            for key, cursor in found.endpoints.items()
        }
        self._delivered = replace(found, endpoints=within)

    def of(self, key: str) -> Cursor:
        return self._delivered.endpoints.get(key, Cursor())

    def put(self, key: str, cursor: Cursor) -> None:
        """Durable when this returns. Raises OSError; the next call then writes both."""
        with self._lock:
            if self._is_closed:
                return
            endpoints = self._delivered.endpoints | {key: cursor}
            self._delivered = replace(self._delivered, endpoints=endpoints)
            durable.write_whole(self._path, codec.to_document(self._delivered))

    def close(self) -> None:
        """Another process may get the queue's lock now, so a thread that is late writes nothing."""
        with self._lock:
            self._is_closed = True


class _Tail:
    """The journal behind one endpoint's cursor. Each line is read once, when it is complete."""

    def __init__(self, path: Path, count: int) -> None:
        """Stands after the first `count` events."""
        self._path = path
        self._offset = 0
        self._seq = 0
        if count:
            self._skip(count)

    def next(self, end: int) -> Event | None:
        """The next event, where it is complete and begins before the byte `end`.

        Raises OSError, and DamagedError for a line that is no event or stands in a wrong place.
        """
        if self._offset >= end:
            return None
        with self._path.open("rb") as file:
            file.seek(self._offset)
            line = file.readline()
        if not line.endswith(b"\n"):
            return None
        event = self._parse(line)
        self._pass(line)
        return event

    def _skip(self, count: int) -> None:
        with self._path.open("rb") as file:
            for line in itertools.islice(file, count):
                self._pass(line)

    def _pass(self, line: bytes) -> None:
        self._offset += len(line)
        self._seq += 1

    def _parse(self, line: bytes) -> Event:
        where = f"{self._path}: line {self._seq + 1}"
        try:
            event = codec.decode(Event, json.loads(line), where)
        except ValueError as error:
            raise DamagedError(f"{where} is damaged ({error})") from error
        if event.seq != self._seq + 1:
            raise DamagedError(f"{where} is damaged (event {event.seq} stands there)")
        return event


class _Endpoint:
    """Sends to one endpoint until it is told to stop, or the endpoint is gone (410)."""

    def __init__(self, webhook: Webhook, path: Path, cursors: _Cursors, wait: Wait) -> None:
        self.key = digest.of_bytes(webhook.url.encode())
        self.problem: str | None = None
        self.thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._webhook = webhook
        self._path = path
        self._cursors = cursors
        self._wait = wait
        self._end = 0
        self._deadline = 0.0
        self._woken, self._closing, self._stopped = (threading.Event() for _ in range(3))

    def wake(self, end: int) -> None:
        self._end = end
        self._woken.set()

    def close(self, deadline: float) -> None:
        self._deadline = deadline
        self._closing.set()
        self._woken.set()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        is_on = True
        while is_on:
            try:
                self._follow()
                is_on = False
            except OSError as error:
                self.problem = f"the journal cannot be read: {error}"
                is_on = self._has_waited(JOURNAL_AGAIN_S)
            except DamagedError as error:
                self.problem = str(error)
                is_on = False

    def _follow(self) -> None:
        cursor = self._cursors.of(self.key)
        if cursor.disabled:
            return
        tail = _Tail(self._path, cursor.seq)
        while (event := self._next(tail)) and self._deliver(event):
            pass

    def _next(self, tail: _Tail) -> Event | None:
        """Wait for the next public event; None when it is time to end."""
        while not self._stopped.is_set():
            # Cleared before the look, so that an event that comes in between is not slept over.
            self._woken.clear()
            event = tail.next(self._end)
            if event is not None and is_public(event):
                return event
            if event is None and self._closing.is_set():
                return None
            if event is None:
                self._woken.wait()
        return None

    def _deliver(self, event: Event) -> bool:
        """Try until the endpoint takes it; False where it gets no more."""
        patience = first_patience()
        while not self._stopped.is_set():
            answer = post(self._webhook, event)
            self.problem = answer.problem
            step = after(answer)
            if step is Step.DELIVERED:
                self._put(seq=event.seq)
                return True
            if step is Step.DISABLE:
                self._put(disabled=f"{answer.problem} at {timestamp.utc_now()}")
                return False
            patience, wait_s = next_patience(patience, answer.retry_after)
            if not self._has_waited(wait_s):
                return False
        return False

    def _has_waited(self, wait_s: float) -> bool:
        """Back off; False where the end comes before the next try."""
        if not self._closing.is_set():
            self._wait(self._closing, wait_s)
            return True
        has_time = time.monotonic() + wait_s < self._deadline
        return has_time and not self._wait(self._stopped, wait_s)

    def _put(self, **changes: Any) -> None:
        try:
            self._cursors.put(self.key, replace(self._cursors.of(self.key), **changes))
        except OSError as error:
            # After a restart the event is sent again, with its id: at least once still holds.
            self.problem = f"the cursor was not written: {error}"


def _count_lines(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(line.endswith(b"\n") for line in file)


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
    is_html = "html" in response.headers.get("content-type", "")
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


def _kind(error: BaseException) -> str:
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
