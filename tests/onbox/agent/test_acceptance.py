"""What the laptop has proven is not trained again, by the real agent."""

from __future__ import annotations

import json
import sys
from typing import Any

from waiting import LIMIT_S

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.files import codec, manifest
from boxcar.shared.files.accepted import Accepted

BAD = {"writes": ["{"]}
REFUSED = ["claimed", "started", "succeeded", "synced", "failed"]


def accept(run: Any, cell: str, sha256: str = "") -> None:
    """As `verify` has it written."""
    bound_to = sha256 or manifest.sha256(run.durable.manifest(cell))
    made = Accepted("tiny", cell, bound_to, timestamp.utc_now(), ("m.json",), "0.1.0")
    atomic.write_whole(run.durable.accepted(cell), codec.to_document(made))


def test_a_launch_after_it_was_accepted_does_not_train(make_run):
    run = make_run({"a": BAD, "b": {}})
    assert run.finish() == 1
    before = run.durable.manifest("a").read_bytes()
    accept(run, "a")
    assert run.finish() == 0
    assert run.life("a") == [*REFUSED, "verified"]
    said = run.events("cell.verified", cell="a")[0].data
    assert (said["by"], said["attempt"], said["unpickled"]) == ("laptop", 1, ["m.json"])
    assert run.durable.manifest("a").read_bytes() == before
    assert len(run.starts("a")) == 1
    assert run.events("queue.done")[-1].data["verified"] == 2
    assert run.finish() == 0
    assert len(run.events("cell.verified", cell="a")) == 1, "it is said once"


def test_an_agent_at_work_takes_it_at_its_next_look_and_what_comes_after_it_runs(make_run):
    run = make_run({"a": BAD, "b": {}}, linger_s=int(LIMIT_S))
    run.durable.queue("q1").write_text("configs/a.json count 3\n")
    agent = run.start()
    run.wait_for("cell.failed", "a")
    accept(run, "a")
    run.wait_for("cell.verified", "a")
    run.append("configs/b.json count 3 after=a")
    run.wait_for("cell.verified", "b")
    run.ask("drain")
    assert agent.wait(LIMIT_S) == 0
    assert len(run.starts("a")) == 1


def test_what_was_accepted_of_another_result_stops_no_training(make_run):
    run = make_run({"a": {"writes": ["{", json.dumps({"step": 1})]}})
    assert run.finish() == 1
    accept(run, "a", sha256="0" * 64)
    assert run.finish() == 0
    assert len(run.starts("a")) == 2


def test_an_acceptance_that_is_damaged_begins_nothing_and_is_told_by_name(make_run):
    run = make_run({"a": BAD, "b": {}})
    assert run.finish() == 1
    accept(run, "a")
    good = run.durable.accepted("a").read_bytes()
    run.durable.accepted("a").write_bytes(good[:-9])
    assert run.finish() == 1
    assert len(run.starts("a")) == 1
    [told] = run.warnings("accepted_damaged")
    assert "accepted/a.json" in told and "`verify` on the laptop" in told
    assert "accepted/a.json" in run.events("queue.done")[-1].data["reason"]
    run.durable.accepted("a").write_bytes(good)
    assert run.finish() == 0
    assert run.state("a") == "verified"


def test_what_nobody_could_check_on_the_box_is_taken_from_the_laptop(make_run, tmp_path):
    python = tmp_path / "without-checker"
    checks = "[[ $* = *load_check* ]] && exit 9"
    python.write_text(f'#!/bin/bash\n{checks}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    run = make_run({"a": {}}, training_python=str(python))
    assert run.finish() == 1
    assert run.events("cell.failed", cell="a")[-1].data["failure"] == "UNCHECKED"
    accept(run, "a")
    assert run.finish() == 0
    assert run.life("a")[-1] == "verified"
    assert len(run.starts("a")) == 1
