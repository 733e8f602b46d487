"""What the agent does while a cell runs, and what becomes of the cell when somebody is killed."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import py_compile
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import make_plan
from waiting import LIMIT_S

from boxcar.shared import state
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk import checked_copy
from boxcar.shared.files import attempt, manifest, resume_pointer
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.agent.runner import Beside, Runner
from onbox.cell import live_checkpoint
from onbox.machine import process

NOTHING = Beside(0.0, lambda: None)
NO_RELEASE = SimpleNamespace(files=(), digest="", onbox="", training="")


def wrapper_of(run: Any, cell: str) -> int:
    found = attempt.read_running(run.scratch().running(cell))
    assert found
    return int(found.pid)


def kill(agent: Any) -> None:
    agent.kill()
    agent.wait()


def test_a_killed_agents_cell_runs_on_and_the_next_agent_sees_it_to_its_end(make_run):
    run = make_run({"a": {"gate": 1}, "b": {}})
    first = run.start()
    pid = run.wait_for_step("a")
    kill(first)
    assert run.is_alive(pid)
    second = run.start()
    run.wait_for("queue.started", count=2)
    run.open_gate()
    assert second.wait(LIMIT_S) == 0
    assert run.starts("a") == [pid]
    assert run.life("a") == ["claimed", "started", "succeeded", "synced", "verified"]
    assert run.state("b") == "verified"
    assert run.result("a")["starts"] == 1


def test_a_cell_that_ended_while_no_agent_lived_is_not_run_again(make_run, until):
    run = make_run({"a": {"gate": 1}})
    first = run.start()
    run.wait_for_step("a")
    kill(first)
    run.open_gate()
    until(lambda: run.scratch().done("a", 1).exists())
    assert run.finish() == 0
    assert len(run.starts("a")) == 1
    assert run.life("a") == ["claimed", "started", "succeeded", "synced", "verified"]


def test_agent_and_wrapper_killed_the_script_is_ended_and_goes_on_from_its_step(make_run):
    run = make_run({"a": {"gate": 1, "steps": 3, "on_term": "ignore"}})
    first = run.start()
    script = run.wait_for_step("a")
    kill(first)
    os.kill(wrapper_of(run, "a"), signal.SIGKILL)
    assert run.is_alive(script)
    second = run.start()
    run.wait_for("cell.retried", "a")
    assert not run.is_alive(script)
    run.open_gate()
    assert second.wait(LIMIT_S) == 0
    assert run.result("a") == {"step": 3, "first": 1, "starts": 2}
    assert run.life("a").count("verified") == 1


def test_a_killed_launcher_is_tried_again_and_goes_on_from_its_step(make_run):
    run = make_run({"a": {"gate": 1, "steps": 3}})
    agent = run.start()
    os.kill(run.wait_for_step("a"), signal.SIGKILL)
    run.wait_for("cell.retried", "a")
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert run.result("a") == {"step": 3, "first": 1, "starts": 2}
    assert run.life("a").count("verified") == 1
    assert run.events("cell.retried")[0].data["failure"] == "137-N"


def test_a_killed_wrapper_is_no_end_of_the_queue(make_run):
    run = make_run({"a": {"gate": 1, "steps": 2}, "b": {}})
    agent = run.start()
    run.wait_for_step("a")
    os.kill(wrapper_of(run, "a"), signal.SIGKILL)
    run.wait_for("cell.retried", "a")
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert [run.state(cell) for cell in "ab"] == ["verified", "verified"]
    assert run.result("a")["first"] == 1


def test_an_adopted_cell_is_told_to_leave_like_any_other(make_run):
    run = make_run({"a": {"gate": 1, "steps": 3, "on_term": 85}})
    first = run.start()
    script = run.wait_for_step("a")
    kill(first)
    second = run.start()
    run.wait_for("queue.started", count=2)
    second.terminate()
    second.wait(LIMIT_S)
    assert not run.is_alive(script)
    assert run.life("a") == ["claimed", "started", "preempted"]
    run.open_gate()
    assert run.finish() == 0
    assert run.result("a")["first"] == 1


@pytest.mark.parametrize("without", ["nothing", "environment", "all"])
def test_a_daemon_whose_wrapper_was_killed_does_not_hold_up_the_queue(make_run, without):
    run = make_run({"a": {"gate": 1, "child": without}, "b": {}})
    agent = run.start()
    run.wait_for_step("a")
    child = int((run.out("a") / "child").read_text())
    os.kill(wrapper_of(run, "a"), signal.SIGKILL)
    run.wait_for("cell.retried", "a")
    assert not run.is_alive(child)
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert run.state("b") == "verified"


@pytest.mark.parametrize("known_by", ["record", "group"])
def test_a_daemon_that_left_no_trace_is_ended_before_the_next_attempt_by_an_agent_that_comes_later(
    make_run, until, known_by
):
    run = make_run({"a": {"gate": 1, "child": "all"}, "b": {}})
    first = run.start()
    run.wait_for_step("a")
    child = int((run.out("a") / "child").read_text())
    until(lambda: child in recorded(run, "a"))
    kill(first)
    os.kill(wrapper_of(run, "a"), signal.SIGKILL)
    assert run.is_alive(child)
    if known_by == "group":
        if not attempt.read_running(run.scratch().running("a")).cgroup:
            pytest.skip("no cgroup may be made here")
        run.scratch().processes("a").unlink()
    second = run.start()
    run.wait_for("cell.started", "a", count=2)
    assert not run.is_alive(child)
    run.open_gate()
    assert second.wait(LIMIT_S) == 0
    assert [run.state(cell) for cell in "ab"] == ["verified", "verified"]


def test_what_belongs_to_nobody_is_named_and_left_alone(make_run, until):
    run = make_run({"a": {"gate": 1}})
    agent = run.start()
    run.wait_for_step("a")
    words = [sys.executable, "-c", "import time; time.sleep(600)", str(run.root), "--token=hf_1"]
    says_who = 'echo $$ >"$1"; exec "${@:2}"'
    place = str(run.root / "stranger")
    subprocess.run(["setsid", "--fork", "bash", "-c", says_who, "sh", place, *words], check=True)
    stranger = int(until(lambda: read_or_nothing(run.root / "stranger")))
    until(lambda: process.descendants(stranger) == [] and process.start_time(stranger))
    if Path(f"/proc/{stranger}/stat").read_text().rpartition(")")[2].split()[1] != "1":
        pytest.skip("orphans do not go to process 1 here")
    os.kill(wrapper_of(run, "a"), signal.SIGKILL)
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    [warning] = run.warnings("strangers")
    assert str(stranger) in warning
    assert "hf_1" not in warning, "what a person's command holds goes to no journal"
    assert run.is_alive(stranger)


def recorded(run: Any, cell: str) -> list[int]:
    found = attempt.read_processes(run.scratch().processes(cell))
    return [one.pid for one in found.processes] if found else []


def read_or_nothing(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def test_a_process_that_happens_to_have_the_wrappers_number_is_left_alone(make_run):
    run = make_run({"a": {"gate": 1, "steps": 2, "on_term": 85}})
    first = run.start()
    run.wait_for_step("a")
    kill(first)
    os.kill(wrapper_of(run, "a"), signal.SIGKILL)
    path = run.scratch().running("a")
    record = json.loads(path.read_bytes())
    path.write_text(json.dumps(record | {"pid": os.getpid()}))  # the start time is another
    run.ask("stop")
    run.finish()
    assert run.state("a") == "preempted"


def test_an_adopted_cell_goes_on_although_the_new_release_has_lost_its_config(make_run):
    old = make_run({"a": {"gate": 1}})
    first = old.start()
    pid = old.wait_for_step("a")
    kill(first)
    new = make_run({"b": {}})
    assert new.release != old.release
    second = new.start()
    new.wait_for("queue.started", count=2)
    new.open_gate()
    assert second.wait(LIMIT_S) == 0
    assert new.starts("a") == [pid]
    assert new.life("a") == ["claimed", "started", "succeeded", "synced", "verified"]
    made = json.loads(new.durable.manifest("a").read_bytes())
    assert made["release"] == old.release.name


def test_a_manifest_says_what_was_run_and_not_what_the_queue_says_now(make_run):
    run = make_run({"a": {"gate": 1}})
    first = run.start()
    run.wait_for_step("a")
    kill(first)
    run.durable.queue("q1").write_text("configs/a.json another 9\n")
    second = run.start()
    run.wait_for("queue.started", count=2)
    run.open_gate()
    assert second.wait(LIMIT_S) == 0
    made = json.loads(run.durable.manifest("a").read_bytes())
    assert (made["task"], made["epochs"]) == ("count", 3)


def test_a_mirror_that_fails_costs_the_mirror_and_not_the_cell(make_run, until):
    run = make_run({"a": {"gate": 1}})
    (run.durable.resume("a") / "a folder that nobody expects").mkdir(parents=True)
    agent = run.start()
    run.wait_for_step("a")
    until(lambda: agent.poll() is not None or run.events("box.warning", cell="a"))
    assert agent.poll() is None
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert run.state("a") == "verified"
    assert run.life("a").count("verified") == 1


def test_what_a_cell_saves_when_it_is_told_to_leave_is_mirrored(make_run, until):
    run = make_run({"a": {"gate": 1, "steps": 5, "on_term": 85}})
    agent = run.start()
    run.wait_for_step("a")
    until(lambda: resume_pointer.read(run.durable.resume("a")))
    agent.terminate()
    agent.wait(LIMIT_S)
    saved_at = (run.out("a") / "latest.json").stat().st_mtime_ns
    pointer = resume_pointer.read(run.durable.resume("a"))
    assert pointer
    assert str(saved_at) in pointer.file.path


def test_on_another_box_the_cell_goes_on_from_what_was_mirrored(make_run, until):
    run = make_run({"a": {"gate": 1, "steps": 5}})
    agent = run.start()
    script = run.wait_for_step("a")
    until(lambda: resume_pointer.read(run.durable.resume("a")))
    kill(agent)
    os.kill(wrapper_of(run, "a"), signal.SIGKILL)
    os.kill(script, signal.SIGKILL)
    shutil.rmtree(run.scratch().root)
    run.open_gate()
    assert run.finish() == 0
    assert run.result("a") == {"step": 5, "first": 1, "starts": 1}
    assert not run.durable.resume("a").exists()


def test_a_damaged_mirror_stops_the_queue_by_name_before_anything_runs(make_run, until):
    run = make_run({"a": {"gate": 1, "on_term": 85}})
    agent = run.start()
    run.wait_for_step("a")
    until(lambda: resume_pointer.read(run.durable.resume("a")))
    agent.terminate()
    agent.wait(LIMIT_S)
    pointer = resume_pointer.read(run.durable.resume("a"))
    assert pointer
    shutil.rmtree(run.scratch().root)
    path = run.durable.resume("a") / pointer.file.path
    path.write_bytes(path.read_bytes()[::-1])
    assert run.finish() == 43
    assert str(path.parent) in run.said
    assert run.starts("a") == []


# --- an agent that dies between any two lines


# What an agent has said and written when it dies: its last event, and what is not there yet of the
# cell on the tier.
POINTS = {
    "the attempt is said but not begun": ("cell.started", ("",)),
    "the attempt has ended": ("cell.started", ("",)),
    "success is said": ("cell.succeeded", ("",)),
    "a part is copied": ("cell.succeeded", ("m.json", "manifest.json", "receipt.json")),
    "all is copied": ("cell.succeeded", ("manifest.json", "receipt.json")),
    "the manifest is there": ("cell.succeeded", ("receipt.json",)),
    "synced is said": ("cell.synced", ("receipt.json",)),
    "the receipt is there": ("cell.synced", ()),
    "verified is said": ("cell.verified", ()),
}


@pytest.fixture(scope="module")
def whole(build_run, tmp_path_factory):
    """A run that has come to its end, and a copy of all that it has left."""
    run = build_run(tmp_path_factory.mktemp("run"), {"a": {"steps": 2}}, scratch=("latest.json",))
    assert run.finish() == 0
    shutil.copytree(run.root, run.root.with_suffix(".copy"), symlinks=True)
    yield run
    run.end()


@pytest.mark.parametrize(
    ("point", "is_torn"), [*((point, True) for point in POINTS), ("the manifest is there", False)]
)
def test_an_agent_that_died_anywhere_is_followed_by_one_that_ends_right(whole, point, is_torn):
    run = whole
    last, missing = POINTS[point]
    shutil.rmtree(run.root)
    shutil.copytree(run.root.with_suffix(".copy"), run.root, symlinks=True)
    made = run.durable.manifest("a").read_bytes()
    cut_journal(run, last, is_torn)
    leave_unpruned(run)
    for name in missing:
        remove(run.durable.cell("a") / name)
    if point == "the attempt is said but not begun":
        remove(run.scratch().cell("a"))

    assert run.finish() == 0
    assert run.life("a").count("synced") == 1
    assert run.life("a").count("verified") == 1
    assert run.result("a")["step"] == 2
    assert len(run.starts("a")) == 1
    assert len(run.warnings("journal_torn")) == is_torn
    assert not (run.out("a") / "latest.json").exists()
    assert not run.durable.resume("a").exists()
    if point != "the attempt is said but not begun":
        assert run.durable.manifest("a").read_bytes() == made


def test_a_result_that_was_lost_with_its_box_is_made_again(whole):
    run = whole
    shutil.rmtree(run.root)
    shutil.copytree(run.root.with_suffix(".copy"), run.root, symlinks=True)
    cut_journal(run, "cell.succeeded", is_torn=False)
    remove(run.durable.cell("a"))
    remove(run.scratch().root)
    run.finish()
    run.finish()
    assert run.life("a").count("verified") == 1
    assert run.result("a")["step"] == 2


def test_what_an_earlier_run_of_this_name_left_on_the_box_is_no_result(whole):
    run = whole
    shutil.rmtree(run.root)
    shutil.copytree(run.root.with_suffix(".copy"), run.root, symlinks=True)
    tier = run.durable
    for path in (tier.journal("q1"), tier.heartbeat("q1"), tier.cell("a"), tier.claim("a")):
        remove(path)
    (run.out("a") / "m.json").write_text('{"step": 99}')
    assert run.finish() == 0
    assert run.result("a")["step"] == 2


def cut_journal(run: Any, last: str, is_torn: bool) -> None:
    """Keep what is said up to the event `last`, and half of the next one if that is torn."""
    path = run.durable.journal("q1")
    remove(run.durable.heartbeat("q1"))  # it never says more than the journal
    lines = path.read_bytes().splitlines(keepends=True)
    count = 1 + [event.type for event in run.events()].index(last)
    path.write_bytes(b"".join(lines[:count]) + (lines[count][:40] if is_torn else b""))


def leave_unpruned(run: Any) -> None:
    """What the agent that came to its end has pruned."""
    run.durable.resume("a").mkdir()
    (run.durable.resume("a") / "1-1-latest.json").write_text("{}")
    (run.out("a") / "latest.json").write_text('{"step": 2}')


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


# --- what is done first when it has to end


@pytest.mark.parametrize(
    ("by", "grace_s", "order"),
    [
        pytest.param("signal", 60.0, ["tell", "mirror"], id="there is time"),
        pytest.param("signal", 5.0, ["mirror", "tell", "mirror"], id="there is none"),
        pytest.param("stop", 5.0, ["tell", "mirror"], id="a person asked"),
    ],
)
def test_the_checkpoint_is_saved_before_the_script_where_the_platform_hurries(
    monkeypatch, by, grace_s, order
):
    done = []
    live = SimpleNamespace(
        was_late=False,
        flush=lambda tick, every_s, until: done.append("mirror") or True,
        finish=lambda tick, every_s: None,
    )
    plan, scratch = SimpleNamespace(grace_s=grace_s), ScratchPaths(Path(), "")
    place = SimpleNamespace(plan=plan, scratch=scratch, release=Path())
    orders = SimpleNamespace(is_to_stop=True, by=by, signalled_at=None)
    silent = SimpleNamespace(warn=None)
    runner = Runner(place, NO_RELEASE, silent, orders, lambda: None)
    looks = iter([True, False])
    monkeypatch.setattr(runner, "_mirror", lambda cell, number: live)
    monkeypatch.setattr(runner, "_lives", lambda cell, child: next(looks))
    monkeypatch.setattr(runner, "_has_wrapper", lambda cell, child: True)
    monkeypatch.setattr(runner, "_tell_to_leave", lambda cell, child: not done.append("tell"))
    runner.see_to_its_end(SimpleNamespace(name="a"), 1, None, NOTHING)
    assert done == order


@pytest.mark.parametrize(
    ("signalled_at", "grace_s", "until"),
    [
        pytest.param(100.0, 30.0, 129.0, id="the box will be gone"),
        pytest.param(None, 30.0, math.inf, id="a person asked"),
        pytest.param(100.0, 0.0, math.inf, id="the platform sends no signal"),
    ],
)
def test_at_a_stop_the_mirror_has_until_the_box_is_gone_and_what_did_not_fit_is_said(
    tmp_path, signalled_at, grace_s, until
):
    said, asked = [], []
    place = SimpleNamespace(
        plan=SimpleNamespace(grace_s=grace_s),
        scratch=ScratchPaths(tmp_path, "r"),
        durable=DurablePaths(tmp_path, "r"),
        release=Path(),
    )
    reporter = SimpleNamespace(say=lambda type, **data: said.append((type, data)))
    orders = SimpleNamespace(signalled_at=signalled_at)
    runner = Runner(place, NO_RELEASE, reporter, orders, lambda: None)
    late = SimpleNamespace(flush=lambda tick, every_s, at: asked.append(at))
    assert not runner._flush(SimpleNamespace(name="a"), late)
    assert asked == [until]
    [(type, data)] = said
    assert (type, data["what"], data["cell"]) == ("box.warning", "mirror_late", "a")
    assert data["text"].startswith("no checkpoint of a reached the durable tier within")


@pytest.mark.parametrize("may_look", [True, False])
@pytest.mark.parametrize("is_proven", [True, False])
def test_an_old_look_at_the_stage_is_taken_again_at_once_only_where_nobody_waits_for_it(
    tmp_path, is_proven, may_look
):
    place = SimpleNamespace(
        scratch=ScratchPaths(tmp_path, "r"), durable=DurablePaths(tmp_path, "r"), release=Path()
    )
    runner = Runner(place, NO_RELEASE, None, None, lambda: None)
    looks = []
    runner._stage = SimpleNamespace(
        is_fresh=False, is_still_proven=lambda: looks.append(1) or is_proven
    )
    cell = CellLine(0, 1, "a", "a.json", "count", 3)
    assert runner.is_set_quickly(cell, 1, may_look=may_look) == (is_proven and may_look)
    assert len(looks) == may_look


@pytest.mark.parametrize("lives", [[False], [True, False]])
def test_what_is_begun_beside_a_cell_is_begun_once_also_if_the_cell_has_ended(
    monkeypatch, tmp_path, lives
):
    place = SimpleNamespace(
        plan=make_plan(resume=None),
        scratch=ScratchPaths(tmp_path, "r"),
        durable=DurablePaths(tmp_path, "r"),
        release=Path(),
    )
    runner = Runner(place, NO_RELEASE, None, SimpleNamespace(is_to_stop=False), lambda: None)
    looks = iter(lives)
    monkeypatch.setattr(runner, "_lives", lambda cell, child: next(looks))
    monkeypatch.setattr(runner, "_has_wrapper", lambda cell, child: True)
    monkeypatch.setattr(runner, "end", lambda cell, number: None)
    begun = []
    beside = Beside(0.01, lambda: begun.append(1))
    runner.see_to_its_end(CellLine(0, 1, "a", "a.json", "count", 3), 1, None, beside)
    assert begun == [1]


def test_a_cell_that_saves_nothing_by_the_jobs_name_is_said_once(monkeypatch, tmp_path):
    monkeypatch.setattr(live_checkpoint, "SHORTEST_S", 0.0)
    monkeypatch.setattr(live_checkpoint, "NEVER_S", -1.0)
    plan = make_plan(resume="step_*.pt", interrupted_every_s=1.0)
    tier, scratch = DurablePaths(tmp_path, "r"), ScratchPaths(tmp_path, "r")
    place = SimpleNamespace(plan=plan, scratch=scratch, durable=tier, release=Path())
    said = []
    reporter = SimpleNamespace(warn_once=lambda *words: said.append(words))
    orders = SimpleNamespace(is_to_stop=False)
    runner = Runner(place, NO_RELEASE, reporter, orders, lambda: None)
    after = iter([True, True, False])  # it is said, and the mirror looks again
    monkeypatch.setattr(runner, "_lives", lambda cell, child: not said or next(after))
    monkeypatch.setattr(runner, "_has_wrapper", lambda cell, child: True)
    monkeypatch.setattr(runner, "end", lambda cell, number: None)
    runner.see_to_its_end(CellLine(0, 1, "a", "a.json", "count", 3), 1, None, NOTHING)
    [(what, text, cell)] = said
    assert (what, cell) == ("no_checkpoint", "a")
    assert "there is no step_*.pt" in text


def test_a_full_disk_takes_back_what_verified_cells_left_beside_their_code(monkeypatch, tmp_path):
    scratch = ScratchPaths(tmp_path, "r")
    for cell in ("verified", "failed"):
        scratch.beside(cell).mkdir(parents=True)
    monkeypatch.setattr(checked_copy, "lack_of_room", lambda folder, sizes_bytes: "full")
    states = {"verified": state.Verified(1, "now", "0"), "failed": None}
    cells = {name: SimpleNamespace(state=one) for name, one in states.items()}
    said = []
    reporter = SimpleNamespace(
        state=lambda: SimpleNamespace(cells=cells), warn=lambda *words: said.append(words)
    )
    place = SimpleNamespace(plan=make_plan(), scratch=scratch, release=Path())
    Runner(place, NO_RELEASE, reporter, None, lambda: None)._make_room([1])
    assert [(what, cell) for what, _, cell in said] == [("beside_removed", "verified")]
    assert [path.parent.name for path in scratch.cells.glob("*/beside")] == ["failed"]


@pytest.mark.parametrize(
    ("before", "was_left"),
    [
        (state.Preempted(1, ""), True),
        (state.Waiting(1, "", "EXIT85"), True),
        (state.Waiting(1, "", "137-N"), False),
        (state.Queued(), False),
    ],
)
def test_a_checkpoint_is_taken_as_finished_where_its_script_was_asked_to_leave(before, was_left):
    found = state.State({"a": state.CellRecord(before)})
    place = SimpleNamespace(scratch=ScratchPaths(Path(), ""), release=Path())
    runner = Runner(place, NO_RELEASE, SimpleNamespace(state=lambda: found), None, lambda: None)
    assert runner._was_left(SimpleNamespace(name="a")) is was_left


def test_a_persons_stop_and_the_systems_signal_are_told_apart(monkeypatch):
    told = []
    monkeypatch.setattr(os, "kill", lambda pid, number: told.append(number))
    running = SimpleNamespace(pid=1, start_time="", boot_id="")
    monkeypatch.setattr(attempt, "read_running", lambda path: running)
    monkeypatch.setattr(process, "is_same", lambda *who: True)
    place = SimpleNamespace(scratch=ScratchPaths(Path(), ""), release=Path())
    for by in ("stop", "signal"):
        orders = SimpleNamespace(is_to_stop=True, by=by)
        runner = Runner(place, NO_RELEASE, None, orders, lambda: None)
        assert runner._tell_to_leave(SimpleNamespace(name="a"), None)
    assert told == [signal.SIGINT, signal.SIGTERM]


def appended(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_wrapper_that_is_edited_on_the_tier_changes_no_later_cell(make_run):
    run = make_run({"a": {"gate": 1}, "b": {}})
    agent = run.start()
    run.wait_for_step("a")
    wrapper = run.release / "run_one.sh"
    wrapper.write_text(wrapper.read_text().replace("set -euo", "export EDITED=1\nset -euo", 1))
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert run.state("b") == "verified"
    assert "EDITED" not in json.loads((run.out("b") / "environment.json").read_text())


def test_staged_code_that_somebody_edits_fails_the_cell_that_met_it_and_no_other(make_run):
    run = make_run({"a": {"gate": 1, "steps": 2}, "b": {}})
    agent = run.start()
    run.wait_for_step("a")
    code = run.scratch().code(run.release.name)
    appended(code / "train.py", "(out / 'edited').touch()\n")
    appended(run.scratch().wrapper(run.release.name) / "run_one.sh", "# edited\n")
    run.open_gate()
    assert agent.wait(LIMIT_S) == 1
    (failed,) = run.events("cell.failed")
    assert (failed.cell, failed.data["failure"]) == ("a", "CODE")
    assert "train.py, run_one.sh of the release was changed" in failed.data["reason"]
    assert run.state("b") == "verified"
    assert not (run.out("b") / "edited").exists()
    assert run.result("b")


def test_a_cell_that_writes_into_the_release_fails_and_begins_anew_when_it_is_run_again(make_run):
    run = make_run({"a": {"appends": ["train.py"], "steps": 2}, "b": {}})
    assert run.finish() == 1
    assert run.state("a") == "failed"
    assert run.state("b") == "verified"
    assert not run.durable.manifest("a").exists()
    (kept,) = run.scratch().earlier.glob("a-*")
    assert json.loads((kept / "latest.json").read_text()) == {"step": 2}
    code = run.scratch().code(run.release.name)
    assert run.finish() == 1  # it is tried again, from the release's code and from step 0
    assert len(run.events("cell.started", cell="a")) == 2
    assert (code / "train.py").read_bytes() != (run.release / "code/train.py").read_bytes()
    again = sorted(run.scratch().earlier.glob("a-*"))[1]
    assert json.loads((again / "m.json").read_text()) == {"step": 2, "first": 0, "starts": 1}


def test_what_a_cell_adds_beside_its_code_is_named_and_seen_by_no_other_cell(make_run):
    run = make_run({"a": {"adds": ["data/x/one", "configs/new"]}, "b": {"adds": ["data/x/one"]}})
    assert run.finish() == 0
    first, second = run.warnings("code_added")
    assert "a left configs/new, data/ beside its code" in first
    assert "$BOXCAR_DATA_DIR" in first
    assert "b left data/ beside its code" in second
    assert manifest.read(run.durable.manifest("a")).warnings == (first,)
    assert (run.scratch().beside("a") / "configs/new").exists()
    for cell in "ab":
        assert (run.scratch().beside(cell) / "data/x/one").read_text() == "\n"
    code = run.scratch().code(run.release.name)
    assert {path.name for path in code.iterdir()} == {"train.py", "configs"}


def test_no_later_attempt_of_a_cell_sees_what_an_earlier_one_added(make_run):
    run = make_run({"a": {"adds": ["data/one"], "exits": [75, 0]}})
    assert run.finish() == 0
    assert run.events("cell.retried")
    assert (run.scratch().beside("a") / "data/one").read_text() == "\n"


def test_what_is_collected_is_carried_wherever_a_tracker_wrote_it_and_of_every_attempt(make_run):
    adds = ["wandb/run-1/log", "data/one"]
    run = make_run({"a": {"adds": adds, "exits": [75, 0]}}, collect=("wandb/",))
    assert run.finish() == 0
    made = manifest.read(run.durable.manifest("a"))
    assert {f.path for f in made.carried.files} == {"wandb/run-1/log", "wandb/run-1/log.1"}
    assert manifest.compare(run.durable.cell("a"), made.all_files) == []
    assert all("wandb" not in text for text in run.warnings("code_added"))
    assert {path.name for path in run.scratch().beside("a").iterdir()} == {"data"}


def test_what_nobody_moved_after_an_attempt_is_the_last_cells_before_the_next(make_run):
    run = make_run({"a": {}, "b": {"gate": 1, "adds": ["data/one"]}})
    first = run.start()
    run.wait_for_step("b")
    kill(first)
    (run.scratch().code(run.release.name) / "late").write_text("of a that ended, or of b")
    run.open_gate()
    assert run.finish() == 0
    assert {path.name for path in run.scratch().beside("b").iterdir()} == {"late", "data"}


def test_an_artifact_that_was_written_beside_the_code_is_told_in_the_failure(make_run):
    run = make_run({"a": {"adds": ["m.json", "latest.json"], "writes": [None]}})
    assert run.finish() == 1
    (failed,) = run.events("cell.failed")
    assert failed.data["failure"] == "NO-ART"
    assert (
        "your script wrote it to ./m.json, beside its code: set workdir: out"
        in (failed.data["reason"])
    )
    (warning,) = run.warnings("code_added")
    assert "Nothing resumes from latest.json there: set workdir: out" in warning


def test_what_lies_there_without_any_attempt_is_kept_apart(make_run):
    run = make_run({"a": {}})
    code = run.scratch().code(run.release.name)
    (code / "data").mkdir(parents=True)
    assert run.finish() == 0
    (kept,) = run.scratch().earlier.glob("beside-*")
    assert (kept / "data").is_dir()
    (warning,) = run.warnings("code_added")
    assert warning == f"data/ lay beside the code before a; now in {kept}"


def test_bytecode_is_neither_a_warning_nor_ever_run(make_run):
    run = make_run({"a": {"gate": 1}, "b": {}}, command=("-m", "train", "{cfg}", "{out}"))
    agent = run.start()
    run.wait_for_step("a")
    code = run.scratch().code(run.release.name)
    source, stamp = code / "train.py", (code / "train.py").stat()
    other = code.with_name("train.py")
    other.write_text("raise SystemExit('stale')".ljust(stamp.st_size, "#"))
    os.utime(other, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    py_compile.compile(str(other), importlib.util.cache_from_source(str(source)))
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert run.state("b") == "verified"
    assert run.warnings("code_added") == []
    assert not list(code.rglob("__pycache__"))


def test_code_that_was_edited_between_two_agents_is_the_releases_again_and_that_is_said(make_run):
    run = make_run({"a": {}, "b": {"gate": 1, "on_term": 85}})
    first = run.start()
    run.wait_for_step("b")
    first.terminate()
    first.wait(LIMIT_S)
    appended(run.scratch().code(run.release.name) / "train.py", "raise SystemExit(1)\n")
    run.open_gate()
    assert run.finish() == 0
    assert run.state("b") == "verified"
    assert (
        "train.py: was changed on this box's scratch before b" in run.warnings("code_restored")[0]
    )


def test_a_cell_that_is_adopted_is_compared_too(make_run):
    run = make_run({"a": {"gate": 1}, "b": {}})
    first = run.start()
    run.wait_for_step("a")
    kill(first)
    appended(run.scratch().code(run.release.name) / "train.py", "\n")
    second = run.start()
    run.wait_for("queue.started", count=2)
    run.open_gate()
    assert second.wait(LIMIT_S) == 1
    assert [run.state(cell) for cell in "ab"] == ["failed", "verified"]
