"""News of boxes behind a real sshd, to a receiver in the laptop's network that comes and goes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from host_scripts import address
from hosts import NAMES, Hosts, NotPermitted, boxes
from rented import Rented, files_with, rent
from waiting import until

PORT = 21200
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = "robot-0123456789abcdef"
# Writes down what it gets, a line each: the path, the id, the body.
SERVE = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
host, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        line = {"path": self.path, "id": self.headers.get("webhook-id"), "body": body}
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\\n")
        answer = b'{"code": 0, "msg": "success"}'
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *args):
        pass
server = ThreadingHTTPServer((host, port), Handler)
print("ready", flush=True)
server.serve_forever()
"""
NOTIFY = [
    {"webhook": {"url": "env:BOXCAR_WEBHOOK_URL", "secret": "env:BOXCAR_WEBHOOK_SECRET"}},
    {"feishu": {"url": "env:FEISHU_URL"}},
]
HOST = f"http://{address(1)}:{PORT}"
ENV = {
    "BOXCAR_WEBHOOK_URL": f"{HOST}/hook/{TOKEN}",
    "BOXCAR_WEBHOOK_SECRET": SECRET,
    "FEISHU_URL": f"{HOST}/chat/{TOKEN}",
    "BOXCAR_LANG": "en",
}
PRIVATE = ("cell.claimed", "cell.succeeded", "cell.preempted")


class Receiver:
    """One that can be switched off and on, in the laptop's network."""

    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self._hosts, self._path = hosts, folder / "received.jsonl"
        self._process: subprocess.Popen[str] | None = None

    def on(self) -> None:
        words = [sys.executable, "-c", SERVE, address(1), str(PORT), str(self._path)]
        self._process = subprocess.Popen(
            [*self._hosts.laptop(), *words], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout
        assert self._process.stdout.readline() == "ready\n"

    def off(self) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def got(self, path: str) -> list[dict[str, Any]]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return [one for one in map(json.loads, lines) if one["path"].startswith(path)]

    def texts(self) -> str:
        return "\n---\n".join(one["body"]["content"]["text"] for one in self.got("/chat"))


@pytest.fixture
def two_boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    import os

    try:
        with boxes(tmp_path / "hosts", NAMES[:2]) as made:
            monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}{os.environ['PATH']}")
            monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
            yield made
    except NotPermitted as reason:
        pytest.skip(f"no boxes of one's own here: {reason}")


def test_a_try_from_a_box_shows_what_is_reached_from_there(one_box: Hosts, tmp_path: Path) -> None:
    run = rent(one_box, tmp_path / "project", {"q1": ["configs/a.json one"]}, notify=NOTIFY)
    receiver = Receiver(one_box, tmp_path)
    receiver.on()
    try:
        tried = run.boxcar("notify", "--test", "--from", "box-a", env=ENV).ended(0)
    finally:
        receiver.off()
    assert "delivered" in tried.out and '{"code": 0, "msg": "success"}' in tried.out
    assert "sent from box box-a" in receiver.texts()
    [event] = receiver.got("/hook")
    assert event["body"]["type"] == "notify.test"

    refused = run.boxcar("notify", "--test", "--from", "box-a", env=ENV).ended(1)
    assert "ConnectionError" in refused.out
    for said in (tried, refused):
        assert TOKEN not in said.out + said.err
    assert files_with(run.box("box-a"), TOKEN) + files_with(run.tier, TOKEN) == []


@pytest.mark.faults
def test_the_last_news_arrives_after_the_receiver_was_down_at_the_end(
    two_boxes: Hosts, tmp_path: Path
) -> None:
    queues = {"q1": ["configs/a.json one", "configs/b.json one"], "q2": ["configs/c.json one"]}
    run = rent(two_boxes, tmp_path / "project", queues, notify=NOTIFY)
    run.hold("b", at=1)
    run.hold("c", at=1)
    receiver = Receiver(two_boxes, tmp_path)
    receiver.on()
    try:
        run.launch(env=ENV).ended(0)
        run.wait_for("a's news", lambda: "cell.verified" in str(receiver.got("/hook")))
        receiver.off()
        run.let_go("b")
        run.let_go("c")
        run.wait_for_agents()
        assert "queue.done" not in str(receiver.got("/hook"))
        run.wait_for("status names what is left", lambda: "not delivered yet" in _status(run))
        receiver.on()
        run.wait_for("the last news", lambda: len(_done(receiver)) == 2)
        until(lambda: "q1 is done" in receiver.texts() and "q2 is done" in receiver.texts())
    finally:
        receiver.off()
    for queue in queues:
        _came_in_order(run, receiver, queue)
    found = [files_with(run.box(box), TOKEN) for box in two_boxes.names]
    assert [*found, files_with(run.tier, TOKEN), files_with(run.results, TOKEN)] == [[], [], [], []]


def _status(run: Rented) -> str:
    said = run.boxcar("status", env=ENV)
    return said.out + said.err


def _done(receiver: Receiver) -> list[str]:
    events = [one["body"] for one in receiver.got("/hook")]
    return [one["data"]["queue"] for one in events if one["type"] == "queue.done"]


def _came_in_order(run: Rented, receiver: Receiver, queue: str) -> None:
    """What a receiver that was killed had taken may come once more, with its id."""
    public = [event["id"] for event in run.events(queue) if event["type"] not in PRIVATE]
    of_queue = [one for one in receiver.got("/hook") if one["body"]["data"]["queue"] == queue]
    came = list(dict.fromkeys(one["id"] for one in of_queue))
    done = [one["id"] for one in of_queue if one["body"]["type"] == "queue.done"]
    assert came == public[: len(came)], "lost, or out of order"
    assert set(done) <= set(came) and done
