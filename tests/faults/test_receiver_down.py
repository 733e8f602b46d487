"""A receiver that is away for a while: what it misses comes later, in order, with the same ids."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest
from tiny_project import TinyProject
from waiting import LIMIT_S

pytestmark = pytest.mark.faults
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PRIVATE = ("cell.claimed", "cell.succeeded", "cell.preempted")
WEBHOOK = {"url": "env:BOXCAR_WEBHOOK_URL", "secret": "env:BOXCAR_WEBHOOK_SECRET"}


def listening(run: TinyProject, port: str = "0") -> tuple[subprocess.Popen[str], str]:
    """A receiver, and the URL that it says."""
    receiver = run.start("listen", "--port", port, "--json", env={"BOXCAR_WEBHOOK_SECRET": SECRET})
    assert receiver.stderr
    return receiver, receiver.stderr.readline().split()[2]


def heard(receiver: subprocess.Popen[str]) -> list[dict[str, str]]:
    """All that it printed, once it has ended."""
    receiver.send_signal(signal.SIGINT)
    return [json.loads(line) for line in receiver.communicate(timeout=LIMIT_S)[0].splitlines()]


@pytest.mark.usefixtures("tell")
@pytest.mark.parametrize("comes_back", ["while the agent runs", "after its end"])
def test_nothing_is_lost_and_nothing_overtakes(project, comes_back):
    cells = [f"c{n}" for n in range(6)]
    run = project({"q1": [f"configs/{c}.json t" for c in cells]}, notify=[{"webhook": WEBHOOK}])
    run.hold("c4", at=1)
    receiver, url = listening(run)
    env = {"BOXCAR_WEBHOOK_URL": url, "BOXCAR_WEBHOOK_SECRET": SECRET}
    run.boxcar("launch", env=env).ended(0)
    run.wait_for_event("q1", "cell.verified", "c0")
    first = heard(receiver)
    run.wait_for_event("q1", "cell.verified", "c3")
    if comes_back == "after its end":
        run.let_go("c4")
        run.wait_for_agents()
    receiver, _ = listening(run, port=url.rsplit(":", 1)[1].strip("/"))
    run.let_go("c4")
    run.boxcar("watch").ended(0)
    second = heard(receiver)
    public = [event["id"] for event in run.events("q1") if event["type"] not in PRIVATE]
    ids = [event["id"] for event in (*first, *second)]
    assert list(dict.fromkeys(ids)) == public, "lost, or out of order"
    assert len(ids) - len(public) <= 1, "more than the one that was under way came twice"
    print(f"{comes_back}: {len(first)} events before, {len(second)} after, {len(public)} in all")
