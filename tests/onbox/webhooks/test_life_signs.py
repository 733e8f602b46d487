from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from waiting import until

from boxcar.shared.channels import dead_man
from boxcar.shared.channels.answer import Endpoint, Later, Refused, Taken
from onbox.machine.credentials import Heartbeat
from onbox.webhooks import post
from onbox.webhooks.life_signs import AGAIN_S, TOLD_AFTER, LifeSigns

URL = "https://hc-ping.test/key/{box}?create=1"
EVERY_S = 300.0


class Night:
    """Signs of life of one box by a clock of our own."""

    def __init__(self) -> None:
        self.now_s, self.sent, self.answer = 0.0, list[str](), Any
        self.answer = Taken()
        self.signs = LifeSigns(
            [Heartbeat(URL, EVERY_S)], "Box.A", send=self._send, clock=lambda: self.now_s
        )

    def _send(self, endpoint: Endpoint) -> Any:
        self.sent.append(endpoint.url)
        return self.answer

    def pass_by(self, seconds: float, sign: Any) -> int:
        """How many signs went out meanwhile; `sign` gives that of an instant."""
        before, until_s = len(self.sent), self.now_s + seconds
        while self.now_s < until_s:
            self.signs.look(lambda: sign(self.now_s))
            until(lambda: not self.signs._checks[0]._thread or self._is_quiet())
            self.now_s += 5.0
        return len(self.sent) - before

    def _is_quiet(self) -> bool:
        thread = self.signs._checks[0]._thread
        return thread is None or not thread.is_alive()


def test_a_box_that_gets_on_says_so_at_its_own_address_and_not_too_often():
    night = Night()
    assert night.pass_by(3600, sign=lambda now_s: now_s) == 12
    assert set(night.sent) == {"https://hc-ping.test/key/box-a?create=1"}


def test_a_cell_that_hangs_all_night_is_told_by_no_sign_and_one_that_goes_on_again_by_the_next():
    night = Night()
    night.pass_by(600, sign=lambda now_s: now_s)
    assert night.pass_by(8 * 3600, sign=lambda _: "stuck") == 1  # what was new when it stuck
    assert night.pass_by(600, sign=lambda now_s: now_s) == 2


def test_an_agent_that_waits_for_lines_is_alive():
    assert Night().pass_by(3600, sign=lambda _: None) == 12


def test_a_service_that_is_away_is_tried_again_soon_and_told_of_once_it_stays_away():
    night = Night()
    night.answer = Later("ConnectTimeout")
    night.pass_by(AGAIN_S, sign=lambda now_s: now_s)
    assert not night.signs.problems()
    night.pass_by(AGAIN_S * TOLD_AFTER, sign=lambda now_s: now_s)
    (said,) = night.signs.problems()
    assert "ConnectTimeout" in said and "hc-ping" not in said
    night.answer = Taken()
    night.pass_by(AGAIN_S, sign=lambda now_s: now_s)
    assert not night.signs.problems()


def test_a_sign_that_is_slow_holds_up_nothing_and_no_second_one_is_sent_beside_it():
    night, sent = Night(), []
    night.signs = LifeSigns(
        [Heartbeat(URL, 60.0)],
        "a",
        send=lambda endpoint: sent.append(endpoint) or until(lambda: night.now_s > 1e6) or Taken(),
        clock=lambda: night.now_s,
    )
    for night.now_s in range(0, 600, 5):
        night.signs.look(lambda: night.now_s)
    assert len(sent) == 1
    night.now_s = 2e6


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b"OK", Taken),
        (201, b"Created", Taken),
        (202, b"", Taken),
        (200, b'{"ok": true}', Taken),
        # healthchecks.io of an address that is a UUID, https://healthchecks.io/docs/http_api/
        (200, b"OK (not found)", Refused),
        (200, b"OK (rate limited)", Later),
        (404, b"not found", Refused),
        (409, b"ambiguous slug", Refused),
        (429, b"rate limit exceeded", Later),
        (500, b"", Later),
        (302, b"", Later),
        # Uptime Kuma
        (200, b'{"ok": false, "msg": "Monitor not found or not active."}', Refused),
        (200, b"<html>please log in</html>", Later),
    ],
)
def test_only_a_yes_of_the_service_is_a_yes(status, body, kind):
    assert isinstance(dead_man.taken(status, {}, body), kind)


@pytest.fixture
def service() -> Iterator[ThreadingHTTPServer]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(201)
            self.end_headers()
            self.wfile.write(b"Created")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = asked  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_sign_is_one_request_to_the_address(service):
    url = f"http://127.0.0.1:{service.server_address[1]}/key/box-a?create=1"
    posted = post.post_once(Endpoint(dead_man.HEARTBEAT, url), "")
    assert (posted.answer, service.asked) == (Taken(), ["/key/box-a?create=1"])
