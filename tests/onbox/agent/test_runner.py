"""What the agent does while a cell runs, and what becomes of the cell when somebody is killed."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import make_plan
from stepping import comes_to, see_through
from waiting import LIMIT_S

from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.files import attempt, attempt_spec, release, resume_pointer
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.agent.runner import Runner
from onbox.agent.slots import Slot
from onbox.attempt import stage
from onbox.checkpoint import live_checkpoint
from onbox.machine import place, process

NO_SLOTS = SimpleNamespace(locks=lambda slot: (), env=lambda slot, env: env, share=lambda slot: 1.0)
NO_RELEASE = SimpleNamespace(files=(), digest="", onbox="", training="")


@pytest.fixture(autouse=True)
def _of_no_release_no_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    of_release = stage.of_release
    monkeypatch.setattr(
        stage,
        "of_release",
        lambda folder, found, scratch: (
            None if found is NO_RELEASE else of_release(folder, found, scratch)
        ),
    )


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
    until(lambda: resume_pointer.read_resume_pointer(run.durable.resume("a")))
    agent.terminate()
    agent.wait(LIMIT_S)
    saved_at = (run.out("a") / "latest.json").stat().st_mtime_ns
    pointer = resume_pointer.read_resume_pointer(run.durable.resume("a"))
    assert pointer
    assert str(saved_at) in pointer.file.path


def test_on_another_box_the_cell_goes_on_from_what_was_mirrored(make_run, until):
    run = make_run({"a": {"gate": 1, "steps": 5}})
    agent = run.start()
    script = run.wait_for_step("a")
    until(lambda: resume_pointer.read_resume_pointer(run.durable.resume("a")))
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
    until(lambda: resume_pointer.read_resume_pointer(run.durable.resume("a")))
    agent.terminate()
    agent.wait(LIMIT_S)
    pointer = resume_pointer.read_resume_pointer(run.durable.resume("a"))
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
        flush=lambda until: comes_to(done.append("mirror") or True),
        finish=lambda: comes_to(None),
    )
    plan, scratch = SimpleNamespace(grace_s=grace_s), ScratchPaths(Path(), "")
    place = SimpleNamespace(plan=plan, scratch=scratch, release=Path())
    orders = SimpleNamespace(is_to_stop=True, by=by, signalled_at=None)
    silent = SimpleNamespace(warn=None)
    runner = Runner(place, NO_RELEASE, silent, orders, slots=NO_SLOTS, wake=lambda: None)
    looks = iter([True, False])
    monkeypatch.setattr(runner, "_mirror", lambda cell, number: live)
    monkeypatch.setattr(runner, "_lives", lambda cell, child: next(looks))
    monkeypatch.setattr(runner, "_has_wrapper", lambda cell, child: True)
    monkeypatch.setattr(runner, "_tell_to_leave", lambda cell, child: not done.append("tell"))
    see_through(runner.see_to_its_end(SimpleNamespace(name="a"), 1, None))
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
    runner = Runner(place, NO_RELEASE, reporter, orders, slots=NO_SLOTS, wake=lambda: None)
    late = SimpleNamespace(flush=lambda at: comes_to(asked.append(at) or False))
    assert not see_through(runner._flush(SimpleNamespace(name="a"), late))
    assert asked == [until]
    [(type, data)] = said
    assert (type, data["what"], data["cell"]) == ("box.warning", "mirror_late", "a")
    assert data["text"].startswith("a: no checkpoint reached the durable tier in")


def test_a_cell_that_saves_nothing_by_the_jobs_name_is_said_once(monkeypatch, tmp_path):
    monkeypatch.setattr(live_checkpoint, "SHORTEST_S", 0.0)
    monkeypatch.setattr(live_checkpoint, "NEVER_S", -1.0)
    plan = make_plan(resume="step_*.pt", interrupted_every_s=1.0)
    tier, scratch = DurablePaths(tmp_path, "r"), ScratchPaths(tmp_path, "r")
    place = SimpleNamespace(plan=plan, scratch=scratch, durable=tier, release=Path())
    said = []
    reporter = SimpleNamespace(
        warn_once=lambda *words: said.append(words), ended_early=lambda cell, number: None
    )
    orders = SimpleNamespace(is_to_stop=False)
    runner = Runner(place, NO_RELEASE, reporter, orders, slots=NO_SLOTS, wake=lambda: None)
    after = iter([True, True, False])  # it is said, and the mirror looks again
    monkeypatch.setattr(runner, "_lives", lambda cell, child: not said or next(after))
    monkeypatch.setattr(runner, "_has_wrapper", lambda cell, child: True)
    monkeypatch.setattr(runner, "end", lambda cell, number: None)
    see_through(runner.see_to_its_end(CellLine(0, 1, "a", "a.json", "count", 3), 1, None))
    [(what, text, cell)] = said
    assert (what, cell) == ("no_checkpoint", "a")
    assert "there is no step_*.pt" in text


def test_a_persons_stop_and_the_systems_signal_are_told_apart(monkeypatch):
    told = []
    monkeypatch.setattr(os, "kill", lambda pid, number: told.append(number))
    running = SimpleNamespace(pid=1, start_time="", boot_id="")
    monkeypatch.setattr(attempt, "read_running", lambda path: running)
    monkeypatch.setattr(process, "is_same", lambda *who: True)
    place = SimpleNamespace(scratch=ScratchPaths(Path(), ""), release=Path())
    for by in ("stop", "signal"):
        orders = SimpleNamespace(is_to_stop=True, by=by)
        runner = Runner(place, NO_RELEASE, None, orders, slots=NO_SLOTS, wake=lambda: None)
        assert runner._tell_to_leave(SimpleNamespace(name="a"), None)
    assert told == [signal.SIGINT, signal.SIGTERM]


def test_nothing_starts_before_it_is_written_that_it_starts(make_run, monkeypatch):
    run, said, fails = make_run({"a": {}}), [], [OSError(errno.ENOSPC, "full"), None]

    def say(type: str, **more: Any) -> None:
        said.append(type)
        if error := fails.pop(0):
            raise error

    reporter = SimpleNamespace(say=say, was_left=lambda cell: False)
    found = release.read_release(run.release)
    where = place.of_queue(run.plan, run.release, found, "q1")
    runner = Runner(where, found, reporter, SimpleNamespace(), slots=NO_SLOTS, wake=lambda: None)
    cell = CellLine(0, 1, "a", "configs/a.json", "count", 3)
    run.scratch().cell("a").mkdir(parents=True)
    monkeypatch.setattr(subprocess, "Popen", lambda words, **how: said.append(words[2]) or 1)
    with pytest.raises(OSError, match="full"):
        runner.start(cell, 1, Slot())
    assert said == ["cell.started"]
    assert runner.start(cell, 1, Slot()) == 1
    assert said[1:] == ["cell.started", str(run.scratch().spec("a", 1))]
    assert attempt_spec.read_attempt_spec(run.scratch().spec("a", 1)).words[0] == "train.py"
