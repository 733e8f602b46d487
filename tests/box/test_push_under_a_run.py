"""A changed job is pushed while a queue runs: what a live agent reads stays, byte for byte."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hosts import Hosts
from rented import Rented, on_the_wire_bytes, rent, without
from tiny_project import sha256

File = tuple[int, int, str]


@pytest.mark.faults
def test_a_changed_job_touches_nothing_that_the_living_agent_reads(
    one_box: Hosts, tmp_path: Path
) -> None:
    run = rent(one_box, tmp_path / "project", {"q1": ["configs/a.json one"]}, linger_s=60)
    run.hold("a", at=1)
    run.write_config("later", x=5)
    first = run.launch("--json").ended(0).document["release"]
    before = _read_by_the_agent(run)
    assert sum(path.endswith("/train.py") for path in before) == 2, "pushed, and staged"
    assert sum(path.endswith(".pyz") for path in before) >= 2, "the agent's, and the laptop's hand"

    train = run.root / "train.py"
    train.write_text(train.read_text().replace("step + 0.5", "step + 0.25"))
    run.write_config("later", x=7)
    run.append("q1", "configs/later.json two 3")
    pushed = run.boxcar("push", "--json").ended(0).document
    second = pushed["release"]
    assert (pushed["is_new"], pushed["queues"]) == (True, {"q1": "appended"})
    assert _read_by_the_agent(run).items() >= before.items()
    assert run.releases == {first, second}

    again = run.launch().ended(0)
    assert f"stays on release {first[:12]}. {second[:12]} is used" in again.err
    _refuse_a_queue_that_was_rewritten(run)

    run.let_go("a")
    run.wait_for_event("q1", "cell.verified", "later")
    assert _metrics(run, "later") == {"score": 3.5, "task": "two", "x": 5}
    assert _read_by_the_agent(run).items() >= before.items()
    _drain_and_go_on(run)
    assert _metrics(run, "third") == {"score": 2.25, "task": "one", "x": 3}


def _refuse_a_queue_that_was_rewritten(run: Rented) -> None:
    local = run.root / "queues" / "q1.txt"
    mine = local.read_text()
    local.write_text(mine.replace("a.json one", "a.json one 4"))
    seen = _files(run.tier, but_not="heartbeat")
    for verb in ("push", "launch"):
        words = ["--no-smoke"] if verb == "launch" else []
        refused = run.boxcar(verb, *words).ended(2)
        assert "-configs/a.json one\n+configs/a.json one 4\n" in refused.err
        assert "cp " in refused.err, "what to type is missing"
    assert _files(run.tier, but_not="heartbeat") == seen
    local.write_text(mine)


def _drain_and_go_on(run: Rented) -> None:
    """The next agent takes the release of the last push."""
    run.boxcar("drain", "--queue", "q1").ended(0)
    run.wait_for_agents()
    run.write_config("third", x=3)
    run.append("q1", "configs/third.json one")
    run.launch().ended(0)
    run.wait_for_event("q1", "cell.verified", "third")


def _read_by_the_agent(run: Rented) -> dict[str, File]:
    """The releases on the tier, what was staged of them, and the agent's own file."""
    scratch = run.box("box-a")
    roots = (run.tier / "releases", scratch / "code", scratch.parent)
    found = {}
    for root in roots:
        files = root.glob("*") if root == scratch.parent else root.rglob("*")
        found |= {str(path): _file(path) for path in files if path.is_file()}
    return found


def _files(folder: Path, but_not: str) -> dict[str, File]:
    paths = (path for path in folder.rglob("*") if path.is_file() and but_not not in path.parts)
    return {str(path): _file(path) for path in paths}


def _file(path: Path) -> File:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, sha256(path)


def _metrics(run: Rented, cell: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((run.tier / f"cells/{cell}/metrics.json").read_text())
    return found


def test_where_the_box_has_no_rsync_only_what_changed_is_sent(
    one_box: Hosts, tmp_path: Path
) -> None:
    run = rent(one_box, tmp_path / "project", {"q1": ["configs/a.json one"]})
    (run.root / "weights.bin").write_bytes(os.urandom(3_000_000))
    without(one_box, "box-a", "rsync")
    first = run.boxcar("push", "--json").ended(0)
    assert "by tar" in first.err
    train = run.root / "train.py"
    train.write_text(train.read_text() + "# changed\n")
    before_bytes = on_the_wire_bytes(one_box, "box-a")
    second = run.boxcar("push", "--json").ended(0)
    assert on_the_wire_bytes(one_box, "box-a") - before_bytes < 500_000
    for said in (first, second):
        assert (run.tier / "releases" / said.document["release"] / "code" / "weights.bin").exists()
