"""Lines whose config the agent's own release lacks run wholly on the newest release that has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S

from boxcar.shared.files import attempt, manifest
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.release import RUN_ONE

DATA = Path(__file__).parents[2] / "data"
# `train.py` of the second release.
OTHER = "# other code\n"


@pytest.fixture
def running(make_run: Any) -> Any:
    """A run at work on its first cell, and an agent that is to end by itself."""
    run = make_run({"a": {"gate": 1}, "b": {}})
    run.start()
    run.wait_for_step("a")
    return run


def finish(run: Any) -> int:
    run.open_gate()
    return int(run.agents[0].wait(LIMIT_S))


def release_of(run: Any, cell: str) -> str:
    return manifest.read_manifest(run.durable.manifest(cell)).release


def test_a_line_with_a_new_config_runs_wholly_on_the_release_that_has_it(running, archives):
    newer = running.push(
        archives,
        {"b": {"exits": [1]}, "new": {}},
        train=(running.release / "code/train.py").read_text() + OTHER,
        env={"WHICH": "newer"},
        artifacts=(Artifact("m.json", ("step",)), Artifact("starts")),
    )
    running.append("configs/new.json count 3")
    assert finish(running) == 0
    own = running.release.name
    assert [release_of(running, cell) for cell in ("a", "b", "new")] == [own, own, newer.name]
    started = {e.cell: e.data["release"] for e in running.events("cell.started")}
    assert started == {"a": own, "b": own, "new": newer.name}
    files = {file.path for file in manifest.read_manifest(running.durable.manifest("new")).files}
    assert "starts" in files
    assert "WHICH" not in json.loads((running.out("b") / "environment.json").read_text())
    assert json.loads((running.out("new") / "environment.json").read_text())["WHICH"] == "newer"
    assert (running.scratch().code(newer.name) / "train.py").read_text().endswith(OTHER)
    assert running.warnings("waits_for_release") == []


def test_a_line_that_came_before_its_release_waits_says_so_and_runs_once_it_is_there(
    make_run, archives
):
    run = make_run({"a": {}}, linger_s=3600)
    agent = run.start()
    run.wait_for("cell.verified", "a")
    run.append("configs/new.json count 3", "configs/newer.json count 3")
    warning = run.wait_for("box.warning", "newer").data["text"]
    assert warning == "configs/newer.json is in no release yet: newer waits until a push brings it"
    assert not run.durable.claim("new").exists()
    first = run.push(archives, {"new": {}})
    run.wait_for("cell.verified", "new")
    run.push(archives, {"newer": {}})
    run.wait_for("cell.verified", "newer")
    assert release_of(run, "new") == first.name
    run.ask("drain")
    assert agent.wait(LIMIT_S) == 0


def test_a_line_that_waited_in_vain_fails_and_is_not_forgotten(running):
    running.append("configs/new.json count 3")
    assert finish(running) == 1
    (failed,) = running.events("cell.failed")
    assert (failed.cell, failed.data["failure"]) == ("new", "NOCFG")
    assert "configs/new.json is in no release: push it" in failed.data["reason"]


def test_of_two_pushes_the_newest_that_has_the_config_counts(running, archives):
    running.push(archives, {"new": {}}, env={"N": "1"})
    second = running.push(archives, {"new": {}}, env={"N": "2"})
    running.push(archives, {"other": {}})
    running.append("configs/new.json count 3")
    assert finish(running) == 0
    assert release_of(running, "new") == second.name


def test_a_retry_keeps_the_release_that_its_cell_was_begun_with(make_run, archives):
    run = make_run({"a": {}}, linger_s=3600)
    run.start()
    first = run.push(archives, {"new": {"gate": str(run.root / "gate"), "on_term": 85}})
    run.append("configs/new.json count 3")
    run.wait_for_step("new")
    run.push(archives, {"new": {}}, env={"N": "2"})
    run.agents[0].terminate()
    run.agents[0].wait(LIMIT_S)
    run.open_gate()
    second = run.start()
    run.wait_for("cell.verified", "new")
    run.ask("drain")
    assert second.wait(LIMIT_S) == 0
    assert release_of(run, "new") == first.name


def test_an_attempt_of_a_newer_release_is_adopted_and_judged_by_it(make_run, archives):
    run = make_run({"a": {}}, linger_s=3600)
    agent = run.start()
    newer = run.push(
        archives,
        {"new": {"gate": str(run.root / "gate")}},
        artifacts=(Artifact("m.json"), Artifact("starts")),
    )
    run.append("configs/new.json count 3")
    run.wait_for_step("new")
    agent.kill()
    agent.wait()
    assert attempt.read_running(run.scratch().running("new"))
    second = run.start()
    run.wait_for("queue.started", count=2)
    run.open_gate()
    run.wait_for("cell.verified", "new")
    run.ask("drain")
    assert second.wait(LIMIT_S) == 0
    assert release_of(run, "new") == newer.name
    files = {file.path for file in manifest.read_manifest(run.durable.manifest("new")).files}
    assert "starts" in files


@pytest.mark.parametrize("changes", [{"launcher": "torchrun"}, {"queues": {"q1": "box-b"}}])
def test_a_release_that_a_running_agent_cannot_take_over_is_named_and_not_taken(
    running, archives, changes
):
    running.push(archives, {"new": {}}, **changes)
    running.append("configs/new.json count 3")
    assert finish(running) == 1
    (warning,) = running.warnings("release_not_taken")
    assert f"its plan differs in {next(iter(changes))}: drain and launch again" in warning
    assert running.state("b") == "verified"


def test_a_damaged_newer_release_costs_only_the_lines_that_need_it(running, archives):
    newer = running.push(archives, {"new": {}})
    (newer / "plan.json").write_text("{}")
    running.append("configs/new.json count 3")
    assert finish(running) == 1
    assert "plan.json" in running.warnings("release_not_taken")[0]
    assert [running.state(cell) for cell in ("a", "b", "new")] == ["verified", "verified", "failed"]


def test_a_cell_that_outlived_its_agent_is_judged_as_it_ended_by_one_of_a_newer_release(
    make_run, archives
):
    """No file of Boxcar's own is a reason to fail it, whatever an agent had read by then."""
    run = make_run({"a": {"gate": 1}, "b": {}}, is_hurried=False)
    queue = run.durable.queue("q1")
    queue.write_text(queue.read_text().replace("count", "-"))
    agent = run.start()
    run.wait_for_step("a")
    agent.kill()
    agent.wait()
    older, train = run.release, (run.release / "code/train.py").read_text() + OTHER
    run.release = run.push(archives, {"b": {}, "new": {}}, train=train)
    run.append("configs/new.json - 3")
    second = run.start()
    run.wait_for("queue.started", count=2)
    run.open_gate()
    rc = second.wait(LIMIT_S)
    assert [event.data["reason"] for event in run.events("cell.failed")] == []
    assert rc == 0
    assert len(run.events("cell.started", cell="a")) == 1
    assert release_of(run, "a") == older.name
    assert [run.state(cell) for cell in ("a", "b", "new")] == ["verified"] * 3


def test_no_cell_is_started_by_a_release_of_another_boxcar_and_that_is_said(make_run, archives):
    """Its run_one.sh takes other words: this is the one of version 0.1.0."""
    run = make_run({"a": {}}, linger_s=3600)
    agent = run.start()
    run.wait_for("cell.verified", "a")
    [older] = (DATA / "v1-run").glob("**/run_one.sh")
    run.push(archives, {"new": {}}, files={RUN_ONE: older.read_bytes()})
    run.append("configs/new.json count 3")
    text = run.wait_for_warning("release_not_taken").data["text"]
    assert "a Boxcar made it that starts cells differently: drain and launch again" in text
    run.wait_for("box.warning", "new")  # and waits
    run.ask("drain")
    agent.wait(LIMIT_S)
    assert run.starts("new") == [] and run.life("new") == []
