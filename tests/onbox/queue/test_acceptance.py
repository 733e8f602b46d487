"""What the laptop has proven is not trained again, by the real agent."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

from waiting import LIMIT_S

from boxcar.shared import timestamp
from boxcar.shared.cell import cell_line
from boxcar.shared.disk import atomic
from boxcar.shared.files import codec, manifest
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.receipt import Accepted

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


def lose_all_but_what_is_lent(run: Any, *cells: str) -> None:
    """A box that was rented anew: of these cells it has what `launch` lends, and no files."""
    kept = {
        path: path.read_bytes()
        for cell in cells
        for path in (run.durable.manifest(cell), run.durable.receipt(cell))
    }
    for folder in (run.durable.cells, run.durable.claims, run.durable.journals):
        shutil.rmtree(folder)
    for name in ("heartbeat", "locks"):
        shutil.rmtree(run.durable.root / name)
    shutil.rmtree(run.scratch().root)
    for path, data in kept.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for folder in run.durable.folders():
        folder.mkdir(parents=True, exist_ok=True)
    for cell in cells:
        lend(run, cell)


def lend(run: Any, cell: str) -> None:
    made = manifest.read_manifest(run.durable.manifest(cell))
    sha256 = manifest.sha256(run.durable.manifest(cell))
    now = timestamp.utc_now()
    document = Accepted("tiny", cell, sha256, now, (), "0.1.0", is_lent=True)
    atomic.write_whole(run.durable.accepted(cell), codec.to_document(document))
    claim = Claim(cell, "q1", "box-a", now, saying=made.saying)
    atomic.write_whole(run.durable.claim(cell), codec.to_document(claim))


def test_what_was_lent_to_a_box_that_was_rented_anew_is_not_trained_there(make_run):
    run = make_run({"a": {}, "b": {}})
    assert run.finish() == 0
    lose_all_but_what_is_lent(run, "a")
    assert run.finish() == 0
    assert run.life("a") == ["verified"]
    assert run.life("b")[-1] == "verified" and len(run.starts("b")) == 1
    assert not run.scratch().cell("a").exists()
    said = run.events("cell.verified", cell="a")[0].data
    assert (said["by"], said["is_lent"], said["attempt"]) == ("laptop", True, 1)
    assert said["metrics"]["step"] == 1
    assert run.warnings("said_otherwise") == []


def test_a_line_that_asks_for_something_else_than_what_was_lent_is_told(make_run):
    run = make_run({"a": {}})
    run.durable.queue("q1").write_text("configs/a.json count 3 env.X=1\n")
    assert run.finish() == 0
    lose_all_but_what_is_lent(run, "a")
    assert run.finish() == 0
    assert run.warnings("said_otherwise") == []
    [event] = run.events("cell.verified", cell="a")
    assert cell_line.begun_line(event).own.env == {"X": "1"}
    lose_all_but_what_is_lent(run, "a")
    run.durable.queue("q1").write_text("configs/a.json count 4\n")
    assert run.finish() == 0
    assert run.life("a") == ["verified"]
    [told] = run.warnings("said_otherwise")
    assert "a was begun as" in told and "has a result" in told


def test_who_comes_after_a_result_whose_files_are_elsewhere_waits_for_them(make_run):
    run = make_run({"a": {}, "b": {}})
    run.durable.queue("q1").write_text("configs/a.json count 3\nconfigs/b.json count 3 after=a\n")
    assert run.finish() == 0
    files = {path.name: path.read_bytes() for path in run.durable.cell("a").iterdir()}
    lose_all_but_what_is_lent(run, "a")
    assert run.finish() == 1
    assert [run.state(cell) for cell in "ab"] == ["verified", "queued"]
    [told] = run.warnings("files_elsewhere")
    assert told.startswith("the files of a are on the laptop alone")
    for name, data in files.items():
        (run.durable.cell("a") / name).write_bytes(data)
    assert run.finish() == 0
    assert run.state("b") == "verified"
