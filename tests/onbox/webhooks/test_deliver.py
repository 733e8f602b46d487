from __future__ import annotations

import contextlib
import json
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks
from journal_lines import chained
from robot import self_signed
from waiting import LIMIT_S, until

from boxcar.shared.channels.answer import asked_s
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import delivered
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.journal_chain import Event
from onbox.machine.credentials import Webhook
from onbox.webhooks import deliver, post
from onbox.webhooks.deliver import Deliverer
from onbox.webhooks.endpoint import JOURNAL_AGAIN_S

pytestmark = pytest.mark.usefixtures("no_proxy")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = "token-0123456789"


@dataclass
class Endpoint(ThreadingHTTPServer):
    """A real endpoint: gives the scripted answers one after another, then 204 for ever."""

    script: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    # Taken before each answer: a test that clears it holds the answers back.
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()
        super().__init__(("127.0.0.1", self.port), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{TOKEN}"

    @property
    def webhook(self) -> Webhook:
        return Webhook(self.url, SECRET)

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.requests]

    @property
    def types(self) -> list[str]:
        return [json.loads(body)["type"] for _, body in self.requests]


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.paths.append(self.path)
        self.server.requests.append(({k.lower(): v for k, v in self.headers.items()}, body))
        assert self.server.may_answer.wait(LIMIT_S)
        status, headers, text = self.server.script.pop(0) if self.server.script else (204, {}, b"")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        pass


@dataclass
class Waits:
    """Stands in for waiting: writes down how long, does `then`, and goes on at once."""

    seconds: list[float] = field(default_factory=list)
    then: Callable[[], object] = lambda: None

    def __call__(self, signal: threading.Event, wait_s: float) -> bool:
        self.seconds.append(wait_s)
        self.then()
        return signal.is_set()


Serve = Callable[..., Endpoint]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[Endpoint] = []

    def make(*script: tuple[int, dict[str, str], bytes] | int, port: int = 0) -> Endpoint:
        whole = [(one, {}, b"") if isinstance(one, int) else one for one in script]
        servers.append(Endpoint(whole, port))
        return servers[-1]

    yield make
    for server in servers:
        server.may_answer.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "queue_1.jsonl", {"run": "r", "queue": "queue_1", "box": "box-a"})


@pytest.fixture
def cursor(tmp_path: Path) -> Path:
    return tmp_path / "delivered.json"


@contextlib.contextmanager
def delivering(
    journal: Journal, cursor: Path, *webhooks: Webhook, wait: Waits | None = None
) -> Iterator[Deliverer]:
    deliverer = Deliverer(journal.path, cursor, webhooks, wait=wait or threading.Event.wait)
    deliverer.start()
    try:
        yield deliverer
    finally:
        deliverer.close(0)


def flush(journal: Journal, cursor: Path, *webhooks: Webhook) -> int:
    return deliver.flush(journal.path, cursor, webhooks, LIMIT_S)


def seq_of(cursor: Path, webhook: Webhook) -> int:
    return delivered.read_delivered(cursor).endpoints[digest.of_bytes(webhook.url.encode())].seq


# -- order, identity, the cursor


def test_events_come_in_order_and_signed(journal, cursor, serve):
    endpoint = serve()
    events = [journal.append("cell.started", cell=f"c{n}", attempt=1) for n in range(5)]
    assert flush(journal, cursor, endpoint.webhook) == 0
    assert endpoint.ids == [event.id for event in events]
    bodies = [standardwebhooks.Webhook(SECRET).verify(b, h) for h, b in endpoint.requests]
    assert bodies[3] == {"type": "cell.started", "timestamp": events[3].at, "data": events[3].data}
    assert seq_of(cursor, endpoint.webhook) == 5


def test_the_signature_holds_in_every_time_zone(journal, cursor, serve, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        endpoint = serve()
        journal.append("queue.done", verified=1, failed=0)
        flush(journal, cursor, endpoint.webhook)
    finally:
        monkeypatch.undo()
        time.tzset()
    headers, body = endpoint.requests[0]
    assert standardwebhooks.Webhook(SECRET).verify(body, headers)["type"] == "queue.done"


def test_events_that_are_appended_meanwhile_are_sent(journal, cursor, serve):
    endpoint = serve()
    with delivering(journal, cursor, endpoint.webhook) as deliverer:
        for count in (1, 2, 3):
            journal.append("box.warning", what="disk", text="low")
            deliverer.wake()
            until(lambda count=count: len(endpoint.requests) == count)


def test_an_event_is_not_sent_before_its_writer_says_that_it_is_durable(journal, cursor, serve):
    endpoint = serve()
    first = journal.append("cell.started", cell="c")
    deliverer = Deliverer(journal.path, cursor, [endpoint.webhook])
    deliverer.start()
    journal.append("cell.synced", cell="c")
    deliverer.close(LIMIT_S)
    assert endpoint.ids == [first.id]
    assert deliverer.pending() == 1


def test_a_restart_goes_on_after_the_last_delivered_event(journal, cursor, serve):
    endpoint = serve()
    journal.append("cell.started", cell="a")
    flush(journal, cursor, endpoint.webhook)
    second = journal.append("cell.started", cell="b")
    assert flush(journal, cursor, endpoint.webhook) == 0
    assert endpoint.ids[1:] == [second.id]


def test_killed_between_send_and_cursor_sends_the_event_again_with_its_id(
    journal, cursor, serve, tmp_path
):
    endpoint = serve()
    event = journal.append("cell.verified", cell="a")
    endpoint.may_answer.clear()
    words = [str(journal.path), str(cursor), endpoint.url, SECRET]
    script = (
        "import sys; from pathlib import Path; from onbox.webhooks import deliver\n"
        "from onbox.machine import credentials\n"
        "journal, cursor, url, secret = sys.argv[1:]\n"
        "deliver.flush(Path(journal), Path(cursor), [credentials.Webhook(url, secret)], 30)\n"
    )
    agent = subprocess.Popen([sys.executable, "-c", script, *words])
    until(lambda: endpoint.requests)
    agent.send_signal(signal.SIGKILL)
    agent.wait(LIMIT_S)
    endpoint.may_answer.set()
    assert not cursor.exists()
    assert flush(journal, cursor, endpoint.webhook) == 0
    assert endpoint.ids == [event.id, event.id]


def test_private_events_are_not_sent(journal, cursor, serve):
    endpoint = serve()
    journal.append("cell.claimed", cell="a")
    journal.append("cell.synced", cell="a")
    journal.append("cell.succeeded", cell="a")
    assert flush(journal, cursor, endpoint.webhook) == 0
    assert endpoint.types == ["cell.synced"]


def test_a_torn_last_line_is_not_sent_until_it_is_whole(journal, cursor, serve):
    endpoint = serve()
    line = Event(1, "evt_1", "2026-01-02T03:04:05.000Z", "queue.done", {}).to_line()
    journal.path.write_bytes(line[:-2])
    assert flush(journal, cursor, endpoint.webhook) == 0
    assert endpoint.requests == []
    journal.path.write_bytes(line)
    assert flush(journal, cursor, endpoint.webhook) == 0
    assert endpoint.ids == ["evt_1"]


@pytest.mark.parametrize("bad", [b"{}\n", b"\xff\n", b"[1]\n", b"\n"])
def test_a_damaged_line_stops_delivery_there_and_is_said(journal, cursor, serve, bad):
    endpoint = serve()
    first = journal.append("cell.started", cell="a")
    third = Event(3, "evt_3", first.at, "queue.done", {}).to_line()
    journal.path.write_bytes(chained([first]) + bad + third)
    with delivering(journal, cursor, endpoint.webhook) as deliverer:
        until(lambda: "line 2" in str(deliverer.status()))
    assert endpoint.ids == [first.id]


def test_a_line_in_a_wrong_place_stops_delivery(journal, cursor, serve):
    endpoint = serve()
    third = Event(3, "evt_3", "2026-01-02T03:04:05.000Z", "queue.done", {}).to_line()
    journal.path.write_bytes(third)
    with delivering(journal, cursor, endpoint.webhook) as deliverer:
        until(lambda: "event 3 is in the place of event 1" in str(deliverer.status()))
    assert endpoint.requests == []


def test_a_journal_that_was_cut_shorter_than_the_cursor_still_sends_what_is_new(
    journal, cursor, serve
):
    endpoint = serve()
    for cell in "abc":
        journal.append("cell.started", cell=cell)
    flush(journal, cursor, endpoint.webhook)
    journal.path.write_bytes(journal.path.read_bytes().split(b"\n")[0] + b"\n")
    shorter = Journal(journal.path, {})
    with delivering(shorter, cursor, endpoint.webhook) as deliverer:
        until(lambda: len(endpoint.ids) == 3)
        new = shorter.append("cell.started", cell="d")
        deliverer.wake()
        until(lambda: len(endpoint.ids) == 4)
    assert endpoint.ids[3] == new.id


def test_a_journal_that_cannot_be_read_is_tried_again(journal, cursor, serve):
    endpoint = serve()
    aside = journal.path.with_name("aside")

    def swap() -> None:
        journal.path.rmdir()
        aside.rename(journal.path)
        deliverer.wake()

    waits = Waits(then=swap)
    deliverer = Deliverer(journal.path, cursor, [endpoint.webhook], wait=waits)
    deliverer.start()
    event = journal.append("cell.started", cell="a")
    journal.path.rename(aside)
    journal.path.mkdir()
    deliverer.wake()
    until(lambda: endpoint.ids == [event.id])
    deliverer.close(0)

    assert waits.seconds == [JOURNAL_AGAIN_S]


def test_a_damaged_cursor_is_refused_and_kept(journal, cursor, serve):
    cursor.write_bytes(b"{")
    with pytest.raises(DamagedError, match="delivered"):
        Deliverer(journal.path, cursor, [serve().webhook]).start()
    assert cursor.read_bytes() == b"{"


def test_a_cursor_that_cannot_be_written_holds_up_nothing_and_is_said(journal, serve, tmp_path):
    endpoint = serve()
    events = [journal.append("cell.started", cell=cell) for cell in "ab"]
    nowhere = tmp_path / "no-such-folder" / "delivered.json"
    with delivering(journal, nowhere, endpoint.webhook) as deliverer:
        until(lambda: "cursor was not written" in str(deliverer.status()))
        until(lambda: len(endpoint.ids) == 2)
    assert endpoint.ids == [event.id for event in events]


# -- failures and waiting


def test_failures_are_tried_again_with_the_same_id_and_a_new_signature(journal, cursor, serve):
    endpoint = serve(500, 503, 404, 401)
    events = [journal.append("cell.started", cell=cell) for cell in "ab"]
    waits = Waits()
    with delivering(journal, cursor, endpoint.webhook, wait=waits) as deliverer:
        until(lambda: not deliverer.pending())
    assert endpoint.ids == [events[0].id] * 5 + [events[1].id]
    assert waits.seconds == sorted(waits.seconds)
    assert len(waits.seconds) == 4
    for headers, body in endpoint.requests:
        standardwebhooks.Webhook(SECRET).verify(body, headers)


def test_an_endpoint_that_was_down_gets_everything_when_it_is_up(journal, cursor, serve):
    gone = serve()
    port = gone.server_address[1]
    gone.shutdown()
    gone.server_close()
    events = [journal.append("cell.started", cell=cell) for cell in "ab"]
    back: list[Endpoint] = []

    def come_back_late() -> None:
        if len(waits.seconds) == 3:
            back.append(serve(port=port))

    waits = Waits(then=come_back_late)
    with delivering(journal, cursor, gone.webhook, wait=waits) as deliverer:
        until(lambda: not deliverer.pending())

    assert back[0].ids == [event.id for event in events]


def test_backing_off_doubles_up_to_five_minutes():
    patience, waits = post.first_patience(), []
    for _ in range(2000):
        patience, wait_s = post.next_patience(patience, 0.0)
        waits.append(wait_s)
    assert all(2**n <= wait_s <= 2**n + 1 for n, wait_s in enumerate(waits[:8]))
    assert waits[9:] == [300.0] * 1991


@pytest.mark.parametrize(
    ("asked", "at_least", "at_most"),
    [
        ("120", 120, 120),
        (" 7 ", 7, 7),
        ("0", 1, 2),
        ("999999", 3600, 3600),
        ("9" * 5000, 1, 3600),
        ("-5", 1, 2),
        ("soon", 1, 2),
        ("Mon, 99 Foo 2026 99:99:99 GMT", 1, 2),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 1, 2),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600, 3600),
        (None, 1, 2),
    ],
)
def test_retry_after_is_honoured_up_to_an_hour(asked, at_least, at_most):
    headers = {"Retry-After": asked} if asked is not None else {}
    _, wait_s = post.next_patience(post.first_patience(), asked_s(headers))
    assert at_least <= wait_s <= at_most


def test_retry_after_may_be_a_date():
    moment = datetime.now(timezone.utc) + timedelta(minutes=30)
    asked = {"retry-after": format_datetime(moment, usegmt=True)}
    _, wait_s = post.next_patience(post.first_patience(), asked_s(asked))
    assert 1700 < wait_s <= 1800


def test_retry_after_of_an_answer_is_waited_for(journal, cursor, serve):
    endpoint = serve((429, {"Retry-After": "120"}, b""), (503, {"Retry-After": "77"}, b""))
    journal.append("queue.done", verified=1, failed=0)
    waits = Waits()
    with delivering(journal, cursor, endpoint.webhook, wait=waits) as deliverer:
        until(lambda: not deliverer.pending())
    assert waits.seconds == [120.0, 77.0]


def test_410_switches_an_endpoint_off_also_after_a_restart(journal, cursor, serve):
    endpoint = serve(410)
    journal.append("cell.started", cell="a")
    journal.append("cell.synced", cell="a")
    assert flush(journal, cursor, endpoint.webhook) == 0
    journal.append("cell.verified", cell="a")
    assert flush(journal, cursor, endpoint.webhook) == 0
    assert endpoint.types == ["cell.started"]
    (one,) = delivered.read_delivered(cursor).endpoints.values()
    assert one.seq == 0
    assert str(one.disabled).startswith("answered 410 at ")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(journal, cursor, serve, status):
    other = serve()
    endpoint = serve((status, {"Location": other.url}, b""))
    journal.append("queue.done", verified=1, failed=0)
    with delivering(journal, cursor, endpoint.webhook, wait=Waits()) as deliverer:
        until(lambda: not deliverer.pending())
    assert len(endpoint.requests) == 2
    assert other.requests == []


def test_a_captive_portal_has_not_taken_the_event(journal, cursor, serve):
    html = {"Content-Type": "text/html; charset=utf-8"}
    endpoint = serve((200, html, b"\n<!DOCTYPE html><title>Log in</title>"), (200, html, b"ok"))
    journal.append("queue.done", verified=1, failed=0)
    with delivering(journal, cursor, endpoint.webhook, wait=Waits()) as deliverer:
        until(lambda: not deliverer.pending())
    assert len(endpoint.requests) == 2


def test_an_endpoint_that_is_down_holds_up_no_other(journal, cursor, serve):
    up, down = serve(), serve()
    down.may_answer.clear()
    events = [journal.append("cell.started", cell=f"c{n}") for n in range(5)]
    with delivering(journal, cursor, down.webhook, up.webhook) as deliverer:
        until(lambda: len(up.ids) == 5)
        until(lambda: deliverer.pending() == 5)
    assert up.ids == [event.id for event in events]
    assert seq_of(cursor, up.webhook) == 5
    assert len(down.ids) == 1


# -- the end


def test_close_gives_a_waiting_endpoint_one_more_try_at_once(journal, cursor, serve):
    endpoint = serve((503, {"Retry-After": "3600"}, b""))
    event = journal.append("agent.stopped", reason="drain")
    deliverer = Deliverer(journal.path, cursor, [endpoint.webhook])
    deliverer.start()
    until(lambda: "answered 503" in str(deliverer.status()))
    deliverer.close(LIMIT_S)
    assert endpoint.ids == [event.id, event.id]
    assert deliverer.pending() == 0


def test_close_does_not_wait_for_a_try_that_would_come_too_late(journal, cursor, serve):
    endpoint = serve(*[(503, {"Retry-After": "3600"}, b"")] * 2)
    journal.append("agent.stopped", reason="drain")
    deliverer = Deliverer(journal.path, cursor, [endpoint.webhook])
    deliverer.start()
    closing = threading.Thread(target=deliverer.close, args=(600,), daemon=True)
    closing.start()
    closing.join(LIMIT_S)
    assert not closing.is_alive()
    assert deliverer.pending() == 1


def test_flush_says_how_many_are_left(journal, cursor, serve):
    endpoint = serve(204, (503, {"Retry-After": "3600"}, b""))
    for cell in "abc":
        journal.append("cell.started", cell=cell)
    assert flush(journal, cursor, endpoint.webhook) == 2
    assert flush(journal, cursor, endpoint.webhook) == 0
    assert len(endpoint.requests) == 4


def test_nothing_writes_the_cursor_after_close(journal, cursor, serve):
    endpoint = serve()
    endpoint.may_answer.clear()
    journal.append("cell.started", cell="a")
    deliverer = Deliverer(journal.path, cursor, [endpoint.webhook])
    deliverer.start()
    until(lambda: endpoint.requests)
    deliverer.close(0.05)
    endpoint.may_answer.set()
    until(lambda: not any(thread.name == "webhook" for thread in threading.enumerate()))
    assert not cursor.exists()
    assert deliverer.pending() == 1


def test_close_before_start_is_no_error(journal, cursor, serve):
    Deliverer(journal.path, cursor, [serve().webhook]).close(1.0)


def test_a_missing_journal_is_waited_for(cursor, serve, tmp_path):
    endpoint = serve()
    with delivering(Journal(tmp_path / "j.jsonl", {}), cursor, endpoint.webhook) as deliverer:
        event = Journal(tmp_path / "j.jsonl", {}).append("agent.started", pid=1)
        deliverer.wake()
        until(lambda: endpoint.ids == [event.id])


def test_without_webhooks_nothing_is_imported_or_written(tmp_path):
    script = (
        "import sys; from pathlib import Path; from onbox.webhooks.deliver import Deliverer\n"
        "one = Deliverer(Path('j'), Path('c'), []); one.start(); one.wake(); one.close(1)\n"
        "print({'requests', 'urllib3', 'standardwebhooks'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"
    assert list(tmp_path.iterdir()) == []


# -- the body


def event_with(**data: Any) -> Event:
    about = {"run": "r", "queue": "q", "box": "b", "cell": "c"}
    return Event(7, "evt_7", "2026-01-02T03:04:05.000Z", "cell.failed", about | data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"reason": "x" * 100_000}, id="one long text"),
        pytest.param({"reason": "\U0001f600" * 19_000}, id="wide characters"),
        pytest.param({"lines": ["y" * 900] * 50}, id="a list of texts"),
        pytest.param({"inner": {"deep": {"text": "z" * 30_000}}}, id="inside"),
    ],
)
def test_long_texts_are_cut_until_the_body_is_under_20_kb(data):
    body = post.body(event_with(**data))
    assert len(body) < 20_000
    assert "(cut from" in json.dumps(json.loads(body)["data"][next(iter(data))])


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({f"k{n}": n for n in range(5000)}, id="many fields"),
        pytest.param({"k" * 30_000: 1}, id="a long name"),
        pytest.param({"lines": ["y" * 900] * 500}, id="many texts"),
    ],
)
def test_what_cannot_be_cut_is_left_out_and_said(data):
    found = json.loads(post.body(event_with(cell="c" * 5000, **data)))["data"]
    assert "event 7" in found["cut"]
    assert found["cell"].startswith("ccc")
    assert list(found) == ["run", "queue", "box", "cell", "cut"]


def test_a_body_that_fits_is_sent_as_it_stands():
    data = {"reason": "ä" * 3000, "metrics": {"psnr_db": 21.3}, "files": [1, None, True]}
    event = event_with(**data)
    assert json.loads(post.body(event))["data"] == event.data


def test_numbers_that_json_has_not_become_texts():
    body = post.body(event_with(metrics={"loss": float("nan"), "best": float("-inf")}))
    found = json.loads(body, parse_constant=pytest.fail)
    assert found["data"]["metrics"] == {"loss": "nan", "best": "-inf"}


def test_half_a_surrogate_pair_does_not_break_a_body():
    assert b"\\udcff" in post.body(event_with(reason="\udcff"))


# -- secrets, TLS, proxies


def test_no_secret_is_shown_anywhere(journal, cursor, serve, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("urllib3").setLevel(logging.NOTSET)
    refused = Webhook(f"http://user:{TOKEN}@127.0.0.1:1/{TOKEN}", SECRET)
    nonsense = Webhook(f"http://127.0.0.1:99999/{TOKEN}", SECRET)
    strange = serve((302, {"Location": f"/{TOKEN}", "bad\r\n header": "x\r\n\r\n"}, b""), 410)
    journal.append("queue.done", verified=1, failed=0)
    with delivering(
        journal,
        cursor,
        refused,
        nonsense,
        strange.webhook,
        wait=Waits(then=lambda: time.sleep(0.1)),
    ) as deliverer:
        until(cursor.exists)
        until(lambda: all(one["problem"] for one in deliverer.status().values()))
        status = str(deliverer.status())
    assert "ConnectionError (ConnectionRefusedError)" in status
    shown = [status, repr(deliverer), cursor.read_text(), caplog.text, *capfd.readouterr()]
    assert not any(value in text for text in shown for value in (TOKEN, SECRET[6:]))


@pytest.fixture
def tls(serve: Serve, tmp_path: Path) -> tuple[Endpoint, Path]:
    context, certificate = self_signed(tmp_path)
    endpoint = serve()
    endpoint.socket = context.wrap_socket(endpoint.socket, server_side=True)
    return endpoint, certificate


def test_a_certificate_that_nobody_signed_is_refused(journal, cursor, tls, monkeypatch, capfd):
    endpoint, certificate = tls
    webhook = Webhook(endpoint.url.replace("http:", "https:"), SECRET)
    journal.append("queue.done", verified=1, failed=0)
    with delivering(journal, cursor, webhook) as deliverer:
        until(lambda: "SSLError (SSLCertVerificationError)" in str(deliverer.status()))
    assert endpoint.requests == []
    # The control: the same endpoint, once its certificate is trusted.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    assert flush(journal, cursor, webhook) == 0
    assert len(endpoint.requests) == 1


def test_the_proxy_of_the_box_is_used(journal, cursor, serve, monkeypatch):
    proxy = serve()
    monkeypatch.setenv("http_proxy", proxy.url)
    journal.append("queue.done", verified=1, failed=0)
    assert flush(journal, cursor, Webhook("http://hooks.invalid/x", SECRET)) == 0
    assert proxy.paths == ["http://hooks.invalid/x"]
