"""Bad days with rented boxes, many in a row: boxes are cut off, slowed and rebooted at random while
a person types, and at the end every cell was published once and is here.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import LIMIT_S

sys.path.insert(0, str(Path(__file__).parents[1] / "box"))

from hosts import NAMES, Hosts, NotPermitted, boxes
from proof import assert_nothing_torn, assert_published_once, assert_pulled
from rented import Rented, hurry, rent

pytestmark = pytest.mark.faults

SEED = int(os.environ.get("BOXCAR_SEED", random.randrange(10**9)))
ROUNDS = 25
CELLS = [f"{box}{number}" for box in "abc" for number in range(4)]
ONE = {"q1": ["configs/a.json one"]}


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    try:
        with boxes(tmp_path / "hosts") as made:
            monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}{os.environ['PATH']}")
            hurry(made)
            yield made
    except NotPermitted as reason:
        pytest.skip(f"no boxes of one's own here: {reason}")


class Storm:
    """What happens to the boxes, and what a person types meanwhile."""

    def __init__(self, run: Rented, chance: random.Random) -> None:
        self.run, self.hosts, self.chance = run, run.hosts, chance
        self.cut: set[str] = set()
        self.rebooted: set[str] = set()  # since the last launch that reached the box
        self.done: list[str] = []

    def happen(self) -> None:
        box = self.chance.choice(NAMES)
        what = self.chance.choice(["cut", "heal", "heal", "reboot", "slow", "crowd", "launch"])
        self.done.append(f"{what} {box}" if what != "launch" else what)
        if what == "launch":
            self.launch()
        elif what == "reboot":
            self.hosts.reboot(box)
            self.rebooted.add(box)
        elif what == "cut":
            self.hosts.cut(box)
            self.cut.add(box)
        elif what == "heal":
            self.hosts.heal(box)
            self.cut.discard(box)
        elif what == "slow":
            self.hosts.slow(box, "1mbit")
        else:
            self.hosts.start_sshd(box, MaxStartups="1:50:2")

    def launch(self) -> None:
        said = self.run.launch("--json")
        assert said.code in (0, 1) and "Traceback" not in said.err, f"{self.done}: {said}"

    def look(self) -> None:
        """Unreachable is never dead, whatever happened: dead is only what was rebooted."""
        said = self.run.boxcar("status", "--json")
        assert said.code in (0, 1) and "Traceback" not in said.err, f"{self.done}: {said}"
        for queue in said.document["queues"]:
            if queue["condition"] in ("agent dead", "trainer dead", "damaged", "unknown"):
                assert queue["box"] in self.rebooted, f"{self.done}: {queue}"
                assert queue["box"] not in self.cut, f"{self.done}: {queue}"

    def calm(self) -> None:
        for box in NAMES:
            self.hosts.heal(box)
            self.hosts.start_sshd(box)
        self.cut.clear()


def test_a_storm_over_three_boxes_loses_nothing(hosts, tmp_path, capsys):
    lines = {
        f"q{number}": [f"configs/{cell}.json one 6" for cell in CELLS if cell[0] == box]
        for number, box in enumerate("abc", 1)
    }
    run = rent(hosts, tmp_path / "project", lines)
    for cell in CELLS:
        run.write_config(cell, seconds=1.0, x=3)
    storm = Storm(run, random.Random(SEED))
    storm.launch()
    for _ in range(ROUNDS):
        storm.happen()
        storm.look()
        time.sleep(storm.chance.uniform(0, 1.5))
    storm.calm()
    run.launch("--json").ended(0)
    watched = run.boxcar("watch", "--every", "1s", "--json").ended(0).document
    assert {cell["state"] for cell in watched["cells"]} == {"verified"}, storm.done
    assert_published_once(run, CELLS)
    assert_nothing_torn(run)
    for cell, box in ((cell, f"box-{cell[0]}") for cell in CELLS):
        _assert_no_step_was_lost(run, box, cell)
    run.boxcar("pull").ended(0)
    assert_pulled(run, CELLS)
    run.boxcar("verify").ended(0)
    run.boxcar("down", typed=run.run).ended(75)
    with capsys.disabled():
        print(f"\nseed {SEED}: {', '.join(storm.done)}")


def _assert_no_step_was_lost(run: Rented, box: str, cell: str) -> None:
    """After each start it goes on at a checkpoint, and in the end it has come to its last step."""
    lines = (run.out(box, cell) / "history.txt").read_text().splitlines()
    at = 0
    for line in lines:
        word, number = line.split()
        # A reboot may come between the step and its checkpoint, never behind two of them.
        assert int(number) in ((at, at - 1) if word == "start" else (at + 1,)), lines
        at = int(number)
    assert at == 6, lines


def test_a_launch_whose_link_is_cut_heals_or_says_so(hosts, tmp_path):
    run = rent(hosts, tmp_path / "project", ONE)
    run.hold("a", at=1)
    for seconds in (1, 8, 200):
        launching = run.start("launch", "--no-smoke")
        run.wait_for_event("q1", "agent.started")
        hosts.cut("box-a")
        until = time.monotonic() + seconds
        while launching.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        hosts.heal("box-a")
        _, err = launching.communicate(timeout=LIMIT_S)
        assert launching.returncode in (0, 1) and "Traceback" not in err, err
        if launching.returncode:
            assert "q1: " in err and ("cannot be reached" in err or "gave no sign" in err), err
        assert run.launch("--json").ended(0).document["started"] == []
    assert run.types("q1").count("agent.started") == 1
    run.let_go("a")
    run.boxcar("watch", "--every", "1s").ended(0)
    assert_published_once(run, ["a"])
