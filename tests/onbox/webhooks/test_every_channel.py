"""Each channel against a server that refuses, limits, hangs, redirects, cuts or is somebody else.

Time goes on only where somebody waits, so the waits are seen and cost nothing.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from robot import HANG, NO, RESET, TOKEN, YES, Clock, Robot, self_signed
from waiting import LIMIT_S, until

from boxcar.shared.channels import known
from boxcar.shared.channels.answer import WEBHOOK, Endpoint, key_of
from boxcar.shared.files import delivered
from boxcar.shared.files.journal import Journal
from onbox.machine.credentials import Webhook
from onbox.webhooks import post
from onbox.webhooks.deliver import Deliverer

pytestmark = pytest.mark.usefixtures("no_proxy")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CHANNELS = (*known.NAMES, WEBHOOK)
ASKED_S = 77.0
# What each says where it is asked too often; those of no row say it by the status alone.
LIMITED: dict[str, bytes] = {
    "feishu": b'{"code": 11232}',
    "lark": b'{"code": 9499}',
    "dingtalk": b'{"errcode": 130101}',
    "wecom": b'{"errcode": 45009}',
    "telegram": b'{"ok": false, "parameters": {"retry_after": 77}}',
}


class Table:
    """One queue that tells one robot; `cursors_s` is what was called delivered at each request."""

    def __init__(self, channel: str, folder: Path) -> None:
        self.channel, self.folder, self.clock = channel, folder, Clock()
        self.robot = Robot(last=(200, {}, YES.get(channel, b"")))
        self.robot.meet = lambda: self.seen.append(self.cursor().seq)
        self.seen: list[int] = []
        self.journal = Journal(folder / "q1.jsonl", {"run": "r", "queue": "q1", "box": "box-a"})
        self.endpoint = self.robot.chat(channel)

    def deliverer(self) -> Deliverer:
        is_webhook = self.channel == WEBHOOK
        made = Deliverer(
            self.journal.path,
            self.folder / "delivered.json",
            [Webhook(self.endpoint.url, SECRET)] if is_webhook else (),
            [] if is_webhook else [self.endpoint],
            wait=self.clock.wait,
            clock=self.clock,
        )
        made.start()
        return made

    def cursor(self) -> delivered.Cursor:
        found = delivered.read_delivered(self.folder / "delivered.json").endpoints
        return found.get(key_of(self.endpoint), delivered.Cursor())

    def fail(self, cell: str) -> Any:
        about = {"attempt": 1, "failure": "M2", "reason": "x", "release": "d" * 64}
        return self.journal.append("cell.failed", cell=cell, **about, is_final=True)

    def told(self) -> str:
        """All bodies as one text; cells in the order in which they were told."""
        return "\n".join(str(body) for body in self.robot.bodies)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Callable[[str], Table]]:
    made: list[Table] = []

    def make(channel: str) -> Table:
        made.append(Table(channel, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.robot.end()


def steps(channel: str) -> dict[str, list[Any]]:
    """What a robot answers before it says yes."""
    limited = LIMITED.get(channel)
    wait = {"retry-after": f"{ASKED_S:.0f}"}
    return {
        "yes": [],
        "no": [(400, {}, NO) if channel == WEBHOOK else (200, {}, NO)] * 3,
        "limited": [(200, wait, limited) if limited else (429, wait, b"")],
        "hangs": [HANG],
        "redirects": [(302, {"location": "/elsewhere"}, b""), (307, {"location": "/else"}, b"")],
        "resets": [RESET, RESET],
        "portal": [(200, {"content-type": "text/html"}, b"<html>Sign in</html>")],
    }


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("answers", list(steps("feishu")))
def test_only_what_was_taken_is_delivered_and_all_of_it_arrives_in_order(
    channel, answers, table, monkeypatch
):
    if answers == "hangs":
        monkeypatch.setattr(post, "READ_S", 0.3)
    one = table(channel)
    one.robot.script = steps(channel)[answers]
    refusals = len(one.robot.script)
    deliverer = one.deliverer()
    first = one.fail("first")
    deliverer.wake()
    until(lambda: len(one.robot.bodies) > refusals)
    last = one.fail("last")
    deliverer.wake()
    until(lambda: one.cursor().seq == last.seq)
    deliverer.close(LIMIT_S)
    assert set(one.seen[: refusals + 1]) == {0}, "delivered before it was taken"
    assert deliverer.pending() == 0
    text = one.told()
    assert text.index("first") < text.index("last")
    assert one.cursor().set_aside is None
    assert set(one.robot.paths) == {one.robot.paths[0]}, "a redirect was followed"
    if answers == "limited":
        assert any(wait_s >= ASKED_S for wait_s in one.clock.waits_s)
    if channel == WEBHOOK:
        ids = [headers["webhook-id"] for headers in one.robot.headers]
        assert list(dict.fromkeys(ids)) == [first.id, last.id]
        assert ids[: refusals + 1] == [first.id] * (refusals + 1)


@pytest.fixture(scope="module")
def somebody_else(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """TLS with a certificate that nobody vouches for."""
    return self_signed(tmp_path_factory.mktemp("tls"))[0]


@pytest.mark.parametrize("channel", CHANNELS)
def test_tls_of_somebody_else_gets_nothing_and_takes_nothing(channel, table, somebody_else):
    one = table(channel)
    one.robot.socket = somebody_else.wrap_socket(one.robot.socket, server_side=True)
    url = one.endpoint.url.replace("http:", "https:")
    one.endpoint = Endpoint(channel, url, "", one.endpoint.to)
    deliverer = one.deliverer()
    one.fail("a")
    deliverer.wake()
    until(lambda: len(one.clock.waits_s) >= 3)
    deliverer.close(0)
    assert one.robot.bodies == []
    assert one.cursor().seq == 0
    assert deliverer.pending() == 1
    [status] = deliverer.status().values()
    assert "SSLError" in str(status["problem"])
    assert TOKEN not in str(status)


@pytest.mark.parametrize("channel", known.NAMES)
def test_a_flood_is_one_message_and_the_services_rate_is_kept(channel, table):
    one = table(channel)
    deliverer = one.deliverer()
    for number in range(40):
        last = one.fail(f"c{number}")
    deliverer.wake()
    until(lambda: one.cursor().seq == last.seq)
    assert len(one.robot.bodies) == 1
    tries_s = [one.clock.now_s]
    for number in range(6):
        last = one.fail(f"d{number}")
        deliverer.wake()
        until(lambda seq=last.seq: one.cursor().seq == seq)
        tries_s.append(one.clock.now_s)
    deliverer.close(0)
    for most, window_s in known.CHANNELS[channel].rate:
        apart = [b - a for a, b in zip(tries_s, tries_s[most:], strict=False)]
        assert all(apart_s >= window_s for apart_s in apart)
