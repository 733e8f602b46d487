"""A lead and its followers as real processes, with a script of three lines where torchrun would be.

The pods of tests/kube run them with torchrun.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from specs import make_spec
from waiting import until

from boxcar.shared.environment import PODS_DOMAIN
from boxcar.shared.files import node_order
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.attempt_spec import write_attempt_spec
from boxcar.shared.files.node_order import NodeOrder, NodeWord
from boxcar.shared.paths import ScratchPaths
from onbox.judging import classify
from onbox.nodes.meeting import Heard
from onbox.nodes.node_log import NodeLog

ROOT = Path(__file__).resolve().parents[3]
FOLLOWS = "import sys; from pathlib import Path; from boxcar.shared.paths import ScratchPaths; from onbox.nodes import follower; sys.exit(follower.run(ScratchPaths(Path(sys.argv[1]), 'tiny'), int(sys.argv[2])))"  # noqa: E501
# What each node runs; which one it is tells the environment, as it tells torchrun.
SAYS_WHO = 'echo "node $PET_RDZV_CONF at $PET_LOCAL_ADDR"; '
LEAD = '[ "$PET_RDZV_CONF" = is_host=1 ]'
WAITS = "while :; do sleep 0.05; done"
HOLDS = f"trap 'echo told $PET_RDZV_CONF; exit 143' TERM; {WAITS}"


@dataclass
class Pods:
    """The processes of a queue's pods; `ended` by the fixture."""

    folder: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def scratch(self) -> ScratchPaths:
        return ScratchPaths(self.folder / "data", "tiny")

    def follower(self, node: int = 1) -> subprocess.Popen[bytes]:
        return self._start("-c", FOLLOWS, str(self.scratch.data_dir), str(node))

    def lead(self, script: str, *, attempt: int = 1, nodes: int = 2) -> subprocess.Popen[bytes]:
        spec = make_spec(self.folder, attempt=attempt, nodes=nodes)
        path = self.scratch.spec("a", attempt)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_attempt_spec(path, spec)
        words = (str(ROOT / "onbox" / "begin.py"), "lead", str(path))
        return self._start(*words, "bash", "-c", SAYS_WHO + script)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        with self.log(len(self.started)).open("wb") as log:
            self.started.append(
                subprocess.Popen(
                    [sys.executable, *words],
                    env={**os.environ, "PYTHONPATH": str(ROOT), PODS_DOMAIN: "set"},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )
        return self.started[-1]

    def log(self, number: int) -> Path:
        return self.folder / f"{number}.log"

    def said(self, one: subprocess.Popen[bytes]) -> str:
        return self.log(self.started.index(one)).read_text()

    def word(self, node: int = 1) -> NodeWord | None:
        return node_order.read_word(self.scratch.node_word(node))


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    made = Pods(tmp_path)
    yield made
    for one in made.started:
        with contextlib.suppress(ProcessLookupError):
            one.send_signal(signal.SIGTERM)
    for one in made.started:
        one.wait()


def test_all_nodes_begin_and_what_they_print_is_in_the_cells_log(pods: Pods) -> None:
    pods.follower(1), pods.follower(2)
    lead = pods.lead("", nodes=3)
    assert lead.wait() == 0, pods.said(lead)
    host = f"{os.uname().nodename}.set"
    expected = [f"node is_host={n} at {host}" for n in (0, 0, 1)]
    assert sorted(pods.said(lead).splitlines()) == expected


def test_a_node_that_takes_no_part_is_left_alone(pods: Pods) -> None:
    pods.follower(1), pods.follower(2)
    until(lambda: pods.word(2))
    lead = pods.lead("", nodes=2)
    assert lead.wait() == 0
    word = pods.word(2)
    assert word and (word.order, word.state) == ("", node_order.IDLE)


def test_a_stop_reaches_the_ranks_of_all_nodes(pods: Pods) -> None:
    pods.follower()
    lead = pods.lead(HOLDS)
    until(lambda: pods.said(lead).count("node ") == 2)
    lead.send_signal(signal.SIGTERM)
    assert lead.wait() == 143
    assert sorted(pods.said(lead).splitlines()[-2:]) == ["told is_host=0", "told is_host=1"]


def test_a_stop_ends_a_lead_that_still_waits_for_a_pod(pods: Pods) -> None:
    lead = pods.lead(HOLDS)
    until(pods.scratch.node_order.exists)
    lead.send_signal(signal.SIGTERM)
    assert lead.wait() == 143
    assert "node is_host" not in pods.said(lead)


@pytest.mark.parametrize("failing", [LEAD, f"! {LEAD}"])
def test_a_node_that_fails_ends_the_others_and_its_code_is_the_attempts(
    pods: Pods, failing: str
) -> None:
    pods.follower()
    holds = pods.folder / "holds"  # its trap is set by then
    waits = f"until [ -e {holds} ]; do sleep 0.05; done"
    fails = f"{failing} && {{ {waits}; echo it failed; exit 3; }}"
    lead = pods.lead(f"{fails}; {HOLDS.replace(WAITS, f'touch {holds}; {WAITS}')}")
    assert lead.wait() == 3
    said = pods.said(lead)
    assert "it failed" in said and said.count("told ") == 1


def test_a_pod_that_dies_ends_the_attempt_and_its_successor_begins_the_next(pods: Pods) -> None:
    first = pods.follower()
    lead = pods.lead(HOLDS)
    until(lambda: pods.said(lead).count("node ") == 2)
    first.kill()
    pods.follower()
    assert lead.wait() == 1
    assert "node 2 of 2 is lost" in pods.said(lead)
    again = pods.lead("", attempt=2)
    assert again.wait() == 0
    assert pods.said(again).count("node ") == 2


def test_an_attempt_that_lost_a_pod_is_tried_again_at_once(tmp_path: Path) -> None:
    corpus = ROOT / "tests" / "data" / "triage" / "own" / "clusters.txt"
    log = corpus.read_text().split("=== NODELOST RESUME_SAME\n")[1].split("===")[0]
    at = "2026-11-29T09:51:08.960Z"
    done = Done("x", 1, 1, at, at, 34.0, oom_kills=0, was_told_to_stop=False, release="r1")
    verdict = classify.classify(done, log, ())
    assert (verdict.action, verdict.waits_s[0]) == (classify.Action.RETRY, 1.0)


def test_ranks_whose_lead_was_killed_have_ended_before_the_next_attempt_begins(pods: Pods) -> None:
    pods.follower()
    saves = f"trap 'sleep 1; touch {pods.folder}/gone; exit' TERM"
    first = pods.lead(f"{LEAD} || {saves}; {WAITS}")
    until(lambda: pods.said(first).count("node ") == 2)
    first.kill()
    lead = pods.lead(f"[ -e {pods.folder}/gone ] && echo alone", attempt=2)
    assert lead.wait() == 0
    assert pods.said(lead).count("alone") == 2


def test_an_order_of_a_lead_that_is_gone_begins_nothing(pods: Pods) -> None:
    pods.scratch.nodes.mkdir(parents=True)
    order = NodeOrder("old", "/none", ("touch", str(pods.folder / "began")), 2, node_order.GO, 7)
    node_order.write_for_pods(pods.scratch.node_order, order)
    pods.follower()
    until(lambda: (word := pods.word()) and word.beat >= 2)
    assert not (pods.folder / "began").exists()


def test_an_attempt_that_is_over_before_a_pod_has_begun_waits_for_nothing_there(pods: Pods) -> None:
    pods.scratch.nodes.mkdir(parents=True)
    pods.follower()

    def order(state: str) -> None:
        one = NodeOrder("a.1", "/none", ("true",), 2, state, 1)
        node_order.write_for_pods(pods.scratch.node_order, one)

    order(node_order.GATHER)
    until(lambda: (word := pods.word()) and word.state == node_order.READY)
    order(node_order.END)
    until(lambda: (word := pods.word()) and word.rc == -signal.SIGTERM)


def test_what_cannot_be_started_there_is_said_in_the_cells_log(pods: Pods) -> None:
    pods.follower()
    credentials = pods.folder / "none.json"
    credentials.write_text("{}")
    credentials.chmod(0o644)
    lead = pods.lead(HOLDS)
    assert lead.wait() == 2
    assert "boxcar: node 2: " in pods.said(lead) and "none.json" in pods.said(lead)


def test_a_beat_that_stands_still_is_lost_and_one_that_moves_is_not() -> None:
    heard = Heard(4, at=100.0)
    assert not heard.is_lost(219.0) and heard.is_lost(221.0)
    assert heard.again(4, 220.0).is_lost(221.0)
    assert not heard.again(5, 220.0).is_lost(221.0)


def test_of_a_log_that_grows_each_whole_line_is_copied_once(tmp_path: Path) -> None:
    path, copy = tmp_path / "log", tmp_path / "copy"
    one = NodeLog(path)
    with copy.open("wb") as out:
        one.copy_to(out.fileno())
        path.write_text("a\nhalf")
        one.copy_to(out.fileno())
        assert copy.read_text() == "a\n"
        path.open("a").write(" and half\nend")
        one.copy_to(out.fileno(), is_last=True)
        one.copy_to(out.fileno(), is_last=True)
    assert copy.read_text() == "a\nhalf and half\nend"
