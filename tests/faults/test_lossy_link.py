"""Links that lose, delay and squeeze what passes: every verb ends right, and within its bounds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import Hosts, NotPermitted, boxes
from proof import assert_nothing_torn, assert_published_once, assert_pulled
from rented import Rented, hurry, rent

from bench.thin_line import line
from boxcar.laptop.hosts import folders

pytestmark = pytest.mark.faults
CELLS = ["a", "b", "c"]
QUEUES = {f"q{number}": [f"configs/{cell}.json one 3"] for number, cell in enumerate(CELLS, 1)}
LOSS = 0.1
# Artifacts that a link of 1 Mbit/s needs some seconds for; other numbers compress away.
BIG_BYTES = 3_000_000
SMALL_BYTES = 400_000
SAVE = 'save(out / "model.json", {"weights": [1.5], "bytes": os.urandom(%d).hex()})'


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    try:
        with boxes(tmp_path / "hosts") as made:
            monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}{os.environ['PATH']}")
            monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
            yield made
    except NotPermitted as reason:
        pytest.skip(f"no boxes of one's own here: {reason}")


def project(hosts: Hosts, root: Path, size_bytes: int) -> Rented:
    """Each of its cells leaves a model of about that size."""
    run = rent(hosts, root, QUEUES)
    train = run.root / "train.py"
    text = train.read_text()
    begin = text.index('save(out / "model.json"')
    end = text.index("\n", begin)
    train.write_text(text[:begin] + SAVE % (size_bytes // 2) + text[end:])
    return run


def live(run: Rented) -> None:
    """From launch to verify, with all cells on the way at the same time."""
    for cell in CELLS:
        run.hold(cell, at=1)
    launched = run.launch("--json").ended(0).document
    assert (launched["started"], launched["problems"]) == (["q1", "q2", "q3"], [])
    seen = run.boxcar("status", "--json").ended(0).document
    assert {queue["condition"] for queue in seen["queues"]} == {"running"}
    for cell in CELLS:
        run.let_go(cell)
    run.boxcar("watch", "--every", "1s").ended(0)
    pulled = run.boxcar("pull", "--json").ended(0).document
    assert [cell["state"] for cell in pulled["cells"]] == ["pulled"] * 3
    assert run.boxcar("verify", "--json").ended(0).document["is_full"]
    assert_published_once(run, CELLS)
    assert_nothing_torn(run)
    assert_pulled(run, CELLS)


def dropped(hosts: Hosts, box: str) -> int:
    """How many packets the box's own rule has taken away."""
    shown = hosts.run(box, ["iptables", "-nvxL", "INPUT"]).stdout.decode().splitlines()
    return sum(int(line.split()[0]) for line in shown if "statistic" in line)


def test_a_run_over_a_link_that_loses_a_tenth_is_whole(hosts, tmp_path):
    run = project(hosts, tmp_path / "project", BIG_BYTES)
    hosts.lose("box-a", LOSS)
    live(run)
    assert dropped(hosts, "box-a") > 20, "nothing was lost, so nothing was tried"
    hosts.heal("box-a")
    assert dropped(hosts, "box-a") == 0


@pytest.mark.parametrize(
    "squeeze",
    [
        pytest.param(lambda hosts: hosts.slow("box-a", "1mbit"), id="1 Mbit per second"),
        pytest.param(
            lambda hosts: hosts.netem("box-a", "delay", "150ms", "30ms", "loss", "3%"),
            id="300 ms there and back and some loss",
        ),
    ],
)
def test_a_run_over_a_link_that_is_slow_is_whole(hosts, tmp_path, squeeze):
    run = project(hosts, tmp_path / "project", SMALL_BYTES)
    squeeze(hosts)
    live(run)


def test_one_pull_goes_through_cuts_and_a_silence(hosts, tmp_path):
    """The line breaks three times, each time once half a megabyte more has come, and then lets
    nothing through for longer than ssh waits."""
    run = project(hosts, tmp_path / "project", BIG_BYTES)
    run.launch().ended(0)
    run.boxcar("watch", "--every", "1s").ended(0)
    shutil.rmtree(run.results)
    hurry(hosts)
    with line(hosts, tmp_path / "counts", 500_000) as proxy:
        pulling = run.start("pull")
        for _cut in range(3):
            came = folders.bytes_below(run.results)
            run.wait_for(
                "more", lambda came=came: folders.bytes_below(run.results) > came + 500_000
            )
            proxy.send_signal(signal.SIGUSR1)
        proxy.send_signal(signal.SIGUSR2)
        time.sleep(20)
        proxy.send_signal(signal.SIGUSR2)
        out, err = pulling.communicate()
    assert pulling.returncode == 0, out + err
    assert err.count("the connection was lost; the copy continues") >= 1
    assert_pulled(run, CELLS)


def test_a_link_that_loses_nearly_all_ends_each_verb_with_the_boxs_name(hosts, tmp_path):
    run = project(hosts, tmp_path / "project", SMALL_BYTES)
    run.hold("a", at=1)
    run.launch().ended(0)
    hosts.lose("box-a", 0.9)
    said = run.boxcar("status", "--json").ended(1)
    assert "box-a does not answer" in str(json.loads(said.out)["problems"])
    conditions = {queue["queue"]: queue["condition"] for queue in said.document["queues"]}
    assert conditions["q1"] == "unreachable", "silence was taken for death"
    hosts.heal("box-a")
    run.let_go("a")
    run.boxcar("watch", "--every", "1s").ended(0)
    assert_published_once(run, CELLS)
