from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError
from waiting import LIMIT_S

from boxcar.laptop.webhooks import receiver as receiving
from boxcar.laptop.webhooks.receiver import (
    Nonsense,
    Notification,
    Receiver,
    serve,
    verified,
    verifier,
)
from boxcar.shared.errors import InputError
from boxcar.shared.files.journal import Journal
from onbox.machine.credentials import Webhook as Endpoint
from onbox.webhooks import deliver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ABOUT = {"run": "r", "queue": "queue_1", "box": "box-a", "cell": "recon_baseline"}


@dataclass
class Heard:
    receiver: Receiver
    events: list[Notification] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def post(self, body: bytes, headers: dict[str, str]) -> int:
        port = self.receiver.server_address[1]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        try:
            connection.request("POST", "/", body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def send(self, raw: bytes) -> bytes:
        """Raw bytes, and all that comes back until the receiver hangs up."""
        with socket.create_connection(self.receiver.server_address[:2], LIMIT_S) as client:
            client.sendall(raw)
            client.shutdown(socket.SHUT_WR)
            return client.makefile("rb").read()


def body_of(**data: object) -> bytes:
    return json.dumps(
        {"type": "cell.verified", "timestamp": "2026-01-02T02:31:07.000Z", "data": ABOUT | data}
    ).encode()


def signed(
    body: bytes, id: str = "evt_1", at: datetime | None = None, secret: str = SECRET
) -> dict[str, str]:
    moment = at or datetime.now(timezone.utc)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(secret).sign(id, moment, body.decode()),
    }


@pytest.fixture
def heard() -> Iterator[Heard]:
    events: list[Notification] = []
    said: list[str] = []
    with serve(0, SECRET, events.append, say=said.append) as receiver:
        yield Heard(receiver, events, said)


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


# -- what is taken


def test_a_signed_event_is_taken_once_and_answered_204(heard: Heard) -> None:
    body = body_of(metrics={"psnr_db": 21.3})

    assert heard.post(body, signed(body)) == 204
    (event,) = heard.events
    assert (event.id, event.type) == ("evt_1", "cell.verified")
    assert event.data == ABOUT | {"metrics": {"psnr_db": 21.3}}


def test_an_event_that_comes_again_is_answered_204_and_not_handed_on(heard: Heard) -> None:
    body = body_of()

    assert [heard.post(body, signed(body)) for _ in range(3)] == [204, 204, 204]
    assert len(heard.events) == 1
    assert (heard.receiver.received, heard.receiver.duplicates) == (1, 2)


def test_an_event_that_could_not_be_shown_is_asked_for_again() -> None:
    events: list[Notification] = []
    said: list[str] = []

    def on_event(event: Notification) -> None:
        events.append(event)
        if len(events) == 1:
            raise BrokenPipeError("the pipe is gone")

    body = body_of()
    with serve(0, SECRET, on_event, say=said.append) as receiver:
        heard = Heard(receiver)
        assert [heard.post(body, signed(body)) for _ in range(3)] == [500, 204, 204]

    assert len(events) == 2
    assert "BrokenPipeError" in said[0]


def test_one_good_signature_among_several_is_enough(heard: Heard) -> None:
    body = body_of()
    headers = signed(body)
    headers["webhook-signature"] = f"v1a,zzz v1,AAAA v1 {headers['webhook-signature']}"

    assert heard.post(body, headers) == 204


def test_what_the_agent_sends_is_taken(heard: Heard, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "queue_1.jsonl", ABOUT)
    sent = [journal.append("cell.progress", progress={"loss": float("nan")}, reason="x" * 50_000)]
    sent.append(journal.append("queue.done", verified=1, failed=0))
    endpoint = Endpoint(heard.receiver.url, SECRET)

    assert deliver.flush(journal.path, tmp_path / "cursor.json", [endpoint], LIMIT_S) == 0
    assert [event.id for event in heard.events] == [event.id for event in sent]


# -- what is refused


def flips(data: bytes) -> Iterator[bytes]:
    for index in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[index // 8] ^= 1 << index % 8
        yield bytes(flipped)


def test_no_flipped_bit_of_the_body_is_accepted() -> None:
    body = body_of()
    headers, webhook = signed(body), verifier(SECRET)
    for flipped in flips(body):
        with pytest.raises((WebhookVerificationError, Nonsense)):
            verified(webhook, headers, flipped)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_no_flipped_bit_of_a_header_is_accepted(name: str) -> None:
    body = body_of()
    headers, webhook = signed(body), verifier(SECRET)
    for flipped in flips(headers[name].encode()):
        with pytest.raises(WebhookVerificationError):
            verified(webhook, headers | {name: flipped.decode("latin-1")}, body)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_no_other_spelling_of_a_header_is_accepted(name: str) -> None:
    body = body_of()
    headers, webhook = signed(body), verifier(SECRET)
    for before, after in [("+", ""), ("0", ""), ("", ".0"), ("", "e0"), ("", "="), ("v1,", "")]:
        with pytest.raises(WebhookVerificationError):
            verified(webhook, headers | {name: before + headers[name] + after}, body)


def test_flipped_requests_are_answered_401_and_never_shown(
    heard: Heard, capfd: pytest.CaptureFixture[str]
) -> None:
    body = body_of(reason="EVIL")
    headers = signed(body)
    assert heard.post(body.replace(b"EVIL", b"evil"), headers) == 401
    assert heard.post(body, headers | {"webhook-id": "evt_EVIL"}) == 401
    assert heard.post(body, headers | {"webhook-signature": "v1,EVIL v1,\xe9 EVIL"}) == 401
    assert heard.post(body, {}) == 401
    heard.send(b"EVIL / HTTP/1.1\r\nevil: \x1b[31mevil\r\n\r\n")

    assert heard.events == []
    assert heard.said
    assert "evil" not in "".join([*heard.said, *capfd.readouterr()]).lower()


@pytest.mark.parametrize("minutes", [-6, 6])
def test_a_stale_timestamp_is_refused_and_the_clocks_are_named(heard: Heard, minutes: int) -> None:
    body = body_of()
    moment = datetime.now(timezone.utc) + timedelta(minutes=minutes)

    assert heard.post(body, signed(body, at=moment)) == 401
    assert "timestamp" in heard.said[0]
    assert "clocks" in heard.said[0]


def test_an_id_that_was_refused_is_not_taken_for_seen(heard: Heard) -> None:
    body = body_of()
    heard.post(body, signed(body) | {"webhook-signature": "v1,AAAA"})

    assert heard.post(body, signed(body)) == 204
    assert len(heard.events) == 1


def test_a_body_over_20_kb_is_answered_413(heard: Heard) -> None:
    body = body_of(reason="x" * 20_000)

    assert heard.post(body, signed(body)) == 413
    assert heard.send(b"POST / HTTP/1.1\r\ncontent-length: 999999999\r\n\r\n").split()[1] == b"413"
    assert heard.events == []


def test_a_client_that_says_too_much_hears_413_and_not_a_reset(heard: Heard) -> None:
    with socket.socket() as client:
        # So small a buffer that sending fails unless the receiver reads on.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        client.settimeout(LIMIT_S)
        client.connect(heard.receiver.server_address[:2])
        client.sendall(b"POST / HTTP/1.1\r\ncontent-length: 900000\r\n\r\n" + b"x" * 900_000)

        assert b" 413 " in client.makefile("rb").readline()


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        b"[]",
        b"{}",
        b'"text"',
        b"[" * 15_000,
        b'{"type": 1, "timestamp": "2026-01-02T02:31:07Z", "data": {}}',
        b'{"type": "a", "timestamp": "2026-01-02T02:31:07Z", "data": []}',
        b'{"type": "a", "timestamp": "yesterday", "data": {}}',
    ],
)
def test_a_signed_body_that_is_no_event_is_answered_400(heard: Heard, body: bytes) -> None:
    assert heard.post(body, signed(body)) == 400
    assert heard.events == []


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"POST / HTTP/1.1\r\n\r\n", id="no length"),
        pytest.param(b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", id="negative"),
        pytest.param(b"POST / HTTP/1.1\r\ncontent-length: 1e3\r\n\r\n", id="no number"),
        pytest.param(b"POST / HTTP/1.1\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n", id="9s"),
        pytest.param(b"POST / HTTP/1.1\r\ncontent-length: 10\r\n\r\n{}", id="broke off"),
        pytest.param(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n\xff\xfe", id="not UTF-8"),
        pytest.param(b"nonsense\r\n\r\n", id="no request"),
    ],
)
def test_nonsense_is_answered_400(heard: Heard, raw: bytes) -> None:
    assert b" 400 " in heard.send(raw)
    assert heard.events == []


def test_other_methods_are_refused(heard: Heard) -> None:
    assert heard.send(b"GET / HTTP/1.1\r\n\r\n").split()[1] == b"501"


def test_a_client_that_falls_silent_holds_up_nobody_and_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiving._Handler, "timeout", 0.5)
    events: list[Notification] = []
    body = body_of()
    with serve(0, SECRET, events.append, say=lambda text: None) as receiver:
        heard = Heard(receiver)
        address = receiver.server_address[:2]
        with socket.create_connection(address, LIMIT_S) as silent:
            with socket.create_connection(address, LIMIT_S) as slow:
                slow.sendall(b"POST / HTTP/1.1\r\ncontent-length: 100\r\n\r\n{")
                assert heard.post(body, signed(body)) == 204
                slow.makefile("rb").read()
            assert silent.recv(1) == b""

    assert len(events) == 1


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_a", "ä", SECRET[:9] + "-" + SECRET[9:], "geheim!"]
)
def test_a_secret_that_is_not_base64_is_refused_and_not_shown(secret: str) -> None:
    with (
        pytest.raises(InputError, match="BOXCAR_WEBHOOK_SECRET") as caught,
        serve(0, secret, print, print),
    ):
        pass
    assert len(secret) < 8 or secret not in str(caught.value)


def test_a_port_that_is_taken_is_said(heard: Heard) -> None:
    port = heard.receiver.server_address[1]

    with pytest.raises(InputError, match=f"{port}.*--port"), serve(port, SECRET, print, print):
        pass


# -- what people see


@pytest.mark.parametrize(
    ("type", "data", "line"),
    [
        (
            "cell.verified",
            ABOUT | {"attempt": 1, "manifest_sha256": "ab" * 32, "metrics": {"psnr_db": 21.30001}},
            "02:31:07  cell.verified  queue_1  recon_baseline  psnr_db 21.3",
        ),
        (
            "cell.verified",
            ABOUT | {"metrics": {"top1": None, "loss": 0.5}, "metric_notes": {"top1": "no file"}},
            "02:31:07  cell.verified  queue_1  recon_baseline  top1 -  loss 0.5",
        ),
        (
            "queue.done",
            {"run": "r", "queue": "queue_1", "box": "b", "verified": 8, "failed": 0},
            "02:31:07  queue.done     queue_1  verified 8  failed 0",
        ),
        (
            "cell.failed",
            ABOUT
            | {
                "attempt": 2,
                "reason": "two\nlines \x1b[31mred \u202e",
                "rc": -9,
                "is_final": False,
            },
            "02:31:07  cell.failed    queue_1  recon_baseline  "
            "attempt 2  reason two lines \\x1b[31mred \\u202e  rc -9  is_final false",
        ),
        (
            "cell.started",
            ABOUT | {"nproc": 1, "saying": "0" * 64},
            "02:31:07  cell.started   queue_1  recon_baseline  nproc 1",
        ),
        ("new.type", {}, "02:31:07  new.type     "),
    ],
)
def test_an_event_is_one_readable_line(
    utc: None, type: str, data: dict[str, object], line: str
) -> None:
    assert Notification("evt_1", type, "2026-01-02T02:31:07.000Z", data).line() == line


def test_a_long_field_is_shortened() -> None:
    line = Notification("e", "box.warning", "2026-01-02T02:31:07Z", {"text": "x" * 5000}).line()

    assert len(line) < 200


def test_listen_prints_each_event_until_it_is_interrupted(tmp_path: Path) -> None:
    script = "from boxcar.laptop.verbs.listen import listen; raise SystemExit(listen(0, ''))"
    verb = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert verb.stdout is not None
    assert verb.stderr is not None
    try:
        head = "".join(verb.stderr.readline() for _ in range(4))
        (url,) = re.findall(r"^export BOXCAR_WEBHOOK_URL=(\S+)$", head, re.MULTILINE)
        secret = subprocess.run(
            ["sh", "-c", f'{head[head.index("export") :]}\nprintf %s "$BOXCAR_WEBHOOK_SECRET"'],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        body = body_of()
        connection = http.client.HTTPConnection(url.split("/")[2], timeout=LIMIT_S)
        connection.request("POST", "/", body, signed(body, secret=secret))
        assert connection.getresponse().status == 204
        line = verb.stdout.readline()
        verb.send_signal(signal.SIGINT)
        rest, notes = verb.communicate(timeout=LIMIT_S)
    finally:
        verb.kill()

    assert rest == ""
    assert "1 event received, 0 duplicates" in notes
    assert verb.returncode == 130 and "continues" not in notes
    assert secret.startswith("whsec_") and secret not in head + notes
    kept = tmp_path / ".boxcar" / "listen.secret"
    assert kept.read_text().strip() == secret and kept.stat().st_mode & 0o777 == 0o600
    assert "cell.verified  queue_1  recon_baseline" in line
