"""Webhooks that reach the laptop through a box."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path

from hosts import Hosts
from standardwebhooks import Webhook
from waiting import until

POST = """
import sys, urllib.request
id, moment, signature, url = sys.argv[1:]
headers = {"webhook-id": id, "webhook-timestamp": moment, "webhook-signature": signature}
request = urllib.request.Request(url, sys.stdin.buffer.read(), headers)
print(urllib.request.urlopen(request, timeout=60).status)
"""


SCRIPT = "from boxcar.cli import program; program.run()"


class Listening:
    """`boxcar listen --through box-a` in the laptop's network, and what it says."""

    def __init__(self, hosts: Hosts, root: Path) -> None:
        words = [sys.executable, "-c", SCRIPT, "listen", "--port=0", "--through=box-a"]
        self.verb = subprocess.Popen(
            [*hosts.laptop(), *words],
            cwd=root,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.notes: list[str] = []
        self.events: list[str] = []
        heard = ((self.verb.stderr, self.notes), (self.verb.stdout, self.events))
        self._threads = [threading.Thread(target=list.extend, args=(to, of)) for of, to in heard]
        for thread in self._threads:
            thread.start()

    def said(self) -> str:
        return "".join(self.notes)

    def connections(self) -> list[int]:
        """The ssh of its own that leads the port here."""
        threads = Path(f"/proc/{self.verb.pid}/task").glob("*/children")
        pids = [int(pid) for children in threads for pid in children.read_text().split()]
        return [pid for pid in pids if _holds(pid)]

    def end(self) -> int:
        self.verb.send_signal(signal.SIGINT)
        code = self.verb.wait()
        for thread in self._threads:
            thread.join()
        return code


def _holds(pid: int) -> bool:
    try:
        return b"/own-" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def post(hosts: Hosts, url: str, secret: str, id: str) -> str:
    """From the box, as its agent would."""
    now = datetime.now(timezone.utc)
    body = {"type": "queue.done", "timestamp": "2026-01-02T02:31:07Z", "data": {"queue": "q"}}
    data = json.dumps(body)
    signature = Webhook(secret).sign(id, now, data)
    moment = str(int(now.timestamp()))
    words = [sys.executable, "-c", POST, id, moment, signature, url]
    return hosts.run("box-a", words, data.encode()).stdout.decode().strip()


def test_events_come_through_a_box_also_after_a_cut(one_box: Hosts, tmp_path: Path) -> None:
    listening = Listening(one_box, tmp_path)
    try:
        until(lambda: "BOXCAR_WEBHOOK_SECRET" in listening.said(), listening.said)
        [url] = re.findall(r"BOXCAR_WEBHOOK_URL=(http://127.0.0.1:[0-9]+/)", listening.said())
        secret = (tmp_path / ".boxcar" / "listen.secret").read_text().strip()
        assert post(one_box, url, secret, "evt_1") == "204"
        [pid] = listening.connections()
        os.kill(pid, signal.SIGKILL)
        until(lambda: "reconnected" in listening.said(), listening.said)
        assert post(one_box, url, secret, "evt_2") == "204"
        pids = listening.connections()
    finally:
        code = listening.end()
    assert code == 130 and len(listening.events) == 2
    assert "connection lost" in listening.said() and "interrupted" not in listening.said()
    assert secret not in listening.said()
    assert pids and not any(map(_holds, pids))
