from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import waiting
from apart import apart
from run_on_disk import cell_failed, cell_verified, held, queue_done
from tiers import with_a_tier_per_box
from tiny_project import TinyProject, make_project

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.project import launches, profile_choice
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.run import first_minute
from boxcar.laptop.tryout import passes
from boxcar.laptop.verbs import control
from boxcar.laptop.verbs import launch as module
from boxcar.laptop.verbs.launch import launch
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.files import control as controls
from boxcar.shared.files import journal, manifest
from boxcar.shared.files.journal import Journal
from boxcar.shared.wire import box_asks, run_asks
from boxcar.shared.wire.question import Question

QUEUES = {"q1": ["configs/a.json one"], "q2": ["configs/b.json one"]}
SECRET = {"MY_KEY": "sk-0123456789", "BOXCAR_WEBHOOK_URL": "", "BOXCAR_WEBHOOK_SECRET": ""}
# A wrapper that breaks on box-b alone, as an image without the right Python would.
BROKEN = """#!/usr/bin/env bash
if [ "$1" = q2 ]; then echo "no Python here" >&2; exit 127; fi
release="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
export BOXCAR_CREDENTIALS={{ on_box(plan.boxes[0].credentials) }}
export BOXCAR_AGENT_PYTHON={{ plan.agent_python }}
exec {{ plan.agent_python }} -I -S "$release"/{{ onbox }} agent \\
  --release "$release" --queue "$1" --start-index "${2:-0}"
"""


def opened(tiny: TinyProject, profile: str = "local") -> Project:
    return open_project(tiny.root / "job.yaml", profile)


def started(tiny: TinyProject, **words: Any) -> int:
    return launch(opened(tiny), environ=SECRET, **words)


def records(project: Project) -> list[dict[str, Any]]:
    path = project.results.root / launches.LAUNCHES
    return [json.loads(line) for line in path.read_text().splitlines()]


class Asked(list[tuple[str, Question[Any]]]):
    """What the boxes were asked; all of it is done but the start of an agent."""

    started_by = "tmux"
    cut = ""
    others = box_asks.OthersSeen((), ())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found, ask = Asked(), LocalSite.ask

    def note(self: LocalSite, box: str, question: Any, **more: Any) -> Any:
        found.append((box, question))
        if box == found.cut and isinstance(question, box_asks.KeepCredentials):
            raise TemporaryError(f"{box} cannot be reached: no route")
        if isinstance(question, run_asks.Start):
            return run_asks.Started(found.started_by, 7)
        if isinstance(question, box_asks.SeeOthers):
            return found.others if box == "box-a" else box_asks.OthersSeen((), ())
        return ask(self, box, question, **more)

    monkeypatch.setattr(LocalSite, "ask", apart(note))
    monkeypatch.setattr(module, "probe", lambda run, agents, tell: [])
    return found


@pytest.fixture
def tiny(tmp_path: Path) -> TinyProject:
    return make_project(tmp_path / "project", QUEUES, secrets=["MY_KEY"])


def test_each_queue_runs_on_its_box_and_its_first_cell_was_seen(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    assert started(tiny, as_json=True) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert told["started"] == ["q1", "q2"] and told["problems"] == []
    assert tiny.releases == {told["release"]}
    for queue, cell, box in (("q1", "a", "box-a"), ("q2", "b", "box-b")):
        assert f"{queue}: running {cell} on {box}" in said.err or f"{queue}: done" in said.err
    tiny.wait_for_agents()
    assert "cell.verified" in tiny.types("q2", "b")
    assert SECRET["MY_KEY"] not in said.out + said.err
    assert "no notifications are set up: add notify:" in said.err
    # Where its cells were faster than the look, all has ended already.
    assert said.err.endswith(("Next: invoke watch\n", "Next: invoke pull\n"))
    (record,) = records(opened(tiny))
    assert record["queues"] == ["q1", "q2"] and record["is_smoked"]


def test_an_agent_that_runs_is_left_alone_and_keeps_its_release(
    tiny: TinyProject, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    project = opened(tiny)
    for folder in project.on_tier.folders():
        atomic.make_folder(folder)
    journal = Journal(project.on_tier.journal("q1"), {"queue": "q1", "box": "box-a"})
    journal.append("agent.started", pid=7, release="ab" * 32, start_index=0)
    with held(project.on_tier.lock("q1")):
        assert started(tiny, as_json=True) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["started"] == ["q2"]
    assert "q1: its agent is already running and stays on release abababab" in said.err
    assert [
        box for box, one in asked if isinstance(one, (box_asks.KeepCredentials, run_asks.Start))
    ] == ["box-b"] * 2


# --- other runs on its boxes


@pytest.fixture
def beside(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """On box-a, which is a rented one, the run `next` is at work."""
    asked.others = box_asks.OthersSeen((box_asks.OtherRun("next", ("q1",), (), {}, ("0",)),), ())
    monkeypatch.setattr(LocalSite, "needs_audit", True)
    return asked


def has_changed(asked: Asked) -> bool:
    changing = (
        run_asks.Prepare,
        run_asks.Append,
        box_asks.KeepCredentials,
        run_asks.WriteControl,
        run_asks.Start,
    )
    return any(isinstance(one, changing) for _, one in asked)


def test_a_set_up_that_the_job_does_not_name_cannot_be_done_again(
    tiny: TinyProject, beside: Asked
) -> None:
    with pytest.raises(InputError, match="--setup: there is nothing to do again"):
        started(tiny, sets_up_again=True)
    assert not has_changed(beside)


def test_where_another_run_is_at_work_nothing_is_started_unless_a_person_says_so(
    tiny: TinyProject, beside: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"box-a: other jobs are running there.*launch --beside"):
        started(tiny)
    assert not has_changed(beside)
    assert "warn: box-a: other runs: next (q1)" in capsys.readouterr().err
    assert started(tiny, is_beside=True) == 0
    assert starts_of(beside, "q1") == 1


@pytest.mark.parametrize(("typed", "is_started"), [("y", True), ("", False), ("n", False)])
def test_on_a_terminal_it_asks(
    tiny: TinyProject, beside: Asked, monkeypatch: pytest.MonkeyPatch, typed: str, is_started: bool
) -> None:
    leader, terminal = pty.openpty()
    os.write(leader, f"{typed}\n".encode())
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        if is_started:
            assert started(tiny) == 0
        else:
            with pytest.raises(InputError, match="--beside"):
                started(tiny)
    os.close(leader)
    assert (starts_of(beside, "q1") == 1) is is_started


@pytest.mark.parametrize(("devices", "is_started"), [("1", True), ("0", False)])
def test_two_jobs_that_name_other_gpus_share_a_box(
    tmp_path: Path, beside: Asked, devices: str, is_started: bool
) -> None:
    env = {"CUDA_VISIBLE_DEVICES": devices}
    tiny = make_project(tmp_path / "other", QUEUES, secrets=["MY_KEY"], env=env)
    if is_started:
        assert started(tiny) == 0
    else:
        with pytest.raises(InputError, match="--beside"):
            started(tiny)
    assert (starts_of(beside, "q1") == 1) is is_started


def test_a_queue_whose_agent_runs_there_already_is_no_reason_to_refuse_the_others(
    tiny: TinyProject, beside: Asked, at_the_look: list[Callable[[], Any]]
) -> None:
    project = ordered(tiny, "run")
    with held(project.on_tier.lock("q1")):
        assert started(tiny) == 0
    assert starts_of(beside, "q2") == 1


def test_on_this_machine_a_line_says_who_is_at_work(
    tiny: TinyProject, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.others = box_asks.OthersSeen((box_asks.OtherRun("next", ("q1",), (), {}),), ())
    assert started(tiny) == 0
    said = capsys.readouterr().err
    assert "also running on this machine: next (q1)" in said
    assert starts_of(asked, "q1") == 1


# --- an agent that is about to end


@pytest.fixture
def at_the_look(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], Any]]:
    """What is done at each further look at the boxes, one after the other."""
    todo: list[Callable[[], Any]] = []
    refresh = LocalSite.refresh

    def look_again(self: LocalSite, *, is_exact: bool = False) -> None:
        if is_exact and began:
            (todo.pop(0) if todo else lambda: None)()
        began.append(True)
        refresh(self, is_exact=is_exact)

    began: list[bool] = []
    monkeypatch.setattr(LocalSite, "refresh", look_again)
    monkeypatch.setattr(control, "LOOKS_AGAIN_S", 0.0)
    monkeypatch.setattr(LocalSite, "tick_s", 0.0)
    return todo


def ordered(tiny: TinyProject, want: str) -> Project:
    """q1 has an agent's folders, and was asked for that."""
    project = opened(tiny)
    for folder in project.on_tier.folders():
        atomic.make_folder(folder)
    control.write_control(LocalSite(project, print), "box-a", "q1", want)
    return project


def end(holder: subprocess.Popen[str]) -> None:
    holder.communicate()


def starts_of(asked: Asked, queue: str) -> int:
    return sum(isinstance(one, run_asks.Start) and one.queue == queue for _, one in asked)


def wanted(project: Project) -> str:
    return controls.wanted(project.on_tier.control("q1"))


def test_a_drain_is_taken_back_from_an_agent_that_has_not_ended(
    tiny: TinyProject,
    asked: Asked,
    at_the_look: list[Callable[[], Any]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = ordered(tiny, "drain")
    with held(project.on_tier.lock("q1")):
        assert started(tiny) == 0
    assert wanted(project) == "run" and starts_of(asked, "q1") == 0
    said = capsys.readouterr().err
    assert "q1: drain cancelled" in said and "q1: its agent is already running" in said


@pytest.mark.parametrize("want", ["drain", "run"])
def test_an_agent_that_ends_all_the_same_is_followed_by_another(
    tiny: TinyProject, asked: Asked, at_the_look: list[Callable[[], Any]], want: str
) -> None:
    """It had read the drain, or had done its last cell, when launch came."""
    project = ordered(tiny, want)
    with held(project.on_tier.lock("q1")) as agent:
        at_the_look.append(lambda: end(agent))
        assert started(tiny) == 0
    assert wanted(project) == "run" and starts_of(asked, "q1") == 1


def test_after_a_stop_the_end_is_waited_for_and_the_queue_starts_again(
    tiny: TinyProject,
    asked: Asked,
    at_the_look: list[Callable[[], Any]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = ordered(tiny, "stop")
    seen: list[tuple[str, int]] = []
    with held(project.on_tier.lock("q1")) as agent:
        look = [lambda: seen.append((wanted(project), starts_of(asked, "q1")))] * 2
        at_the_look += [*look, lambda: end(agent)]
        assert started(tiny) == 0
    assert seen == [("stop", 0)] * 2, "it is still to save and leave"
    assert wanted(project) == "run" and starts_of(asked, "q1") == 1
    said = capsys.readouterr().err
    assert (
        "q1 is stopping; launch waits for that, then starts it" in said and "left alone" not in said
    )


def test_a_launch_that_is_interrupted_while_it_waits_leaves_the_stop_as_it_is(
    tiny: TinyProject, asked: Asked, at_the_look: list[Callable[[], Any]]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    project = ordered(tiny, "stop")
    at_the_look.append(interrupt)
    with held(project.on_tier.lock("q1")), pytest.raises(KeyboardInterrupt):
        started(tiny)
    assert wanted(project) == "stop" and starts_of(asked, "q1") == 0


def test_an_agent_that_does_not_end_is_said_and_is_not_all_well(
    tiny: TinyProject,
    asked: Asked,
    at_the_look: list[Callable[[], Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(control, "LEAVES_WITHIN_S", 0.0)
    project = ordered(tiny, "stop")
    with held(project.on_tier.lock("q1")):
        assert started(tiny) == 1
    assert wanted(project) == "stop" and starts_of(asked, "q1") == 0
    said = capsys.readouterr().err
    assert "q1: still stopping" in said and "launch" in said
    assert starts_of(asked, "q2") == 1, "it holds up no other"


@pytest.mark.parametrize("state", ["verified", "failed"])
def test_a_queue_in_which_nothing_is_left_is_not_started_and_a_failed_cell_starts_over(
    tiny: TinyProject, asked: Asked, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    project = opened(tiny)
    for folder in project.on_tier.folders():
        atomic.make_folder(folder)
    journal = Journal(project.on_tier.journal("q1"), {"queue": "q1", "box": "box-a"})
    journal.append("agent.started", pid=7, release="ab" * 32, start_index=0)
    published = project.on_tier.manifest("a")
    atomic.make_folder(published.parent)
    published.write_text("{}")
    sha256 = manifest.sha256(published)
    of_cell = cell_verified("a", sha256) if state == "verified" else cell_failed("a")
    for name, data in (of_cell, queue_done()):
        journal.append(name, **data)
    assert started(tiny, as_json=True) == 0
    said = capsys.readouterr()
    wanted = ["q2"] if state == "verified" else ["q1", "q2"]
    assert json.loads(said.out)["started"] == wanted
    assert ("q1: all its cells are verified" in said.err) == (state == "verified")
    over = "q1: 1 failed cell starts over, changed or not: a\n"
    assert (over in said.err) == (state == "failed")


def test_a_box_that_dies_while_it_is_served_stops_no_other(
    tiny: TinyProject,
    asked: Asked,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = with_a_tier_per_box(opened(tiny), monkeypatch, dying="box-a")
    assert launch(project, environ=SECRET, as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["started"] == ["q2"] and tiny.releases == {told["release"]}
    (problem,) = told["problems"]
    assert problem.startswith("q1: not launched: box-a cannot be reached: the connection was lost")
    assert problem.endswith("invoke launch --box box-a")
    (record,) = records(project)
    assert record["queues"] == ["q2"]


def test_a_box_that_is_served_starts_without_waiting_for_a_slow_one(
    tiny: TinyProject, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    b_starts = threading.Event()

    def hear(box: str, question: Question[Any]) -> None:
        if box == "box-b" and isinstance(question, run_asks.Start):
            b_starts.set()
        if box == "box-a" and isinstance(question, run_asks.FindRelease):
            assert b_starts.wait(waiting.LIMIT_S)

    project = with_a_tier_per_box(opened(tiny), monkeypatch, hear=hear)
    assert launch(project, environ=SECRET) == 0
    assert b_starts.is_set()


def test_another_laptop_that_was_a_moment_faster_is_left_alone(
    tiny: TinyProject, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agent starts between our look and our question, so the box finds it running."""
    asked.started_by = "running"
    assert started(tiny, as_json=True) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["started"] == []
    assert said.err.count("its agent is already running") == 2


def test_an_agent_that_dies_at_once_is_told_with_its_words_and_holds_up_no_other(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tiny.root / "templates").mkdir()
    (tiny.root / "templates" / "run_queue.sh.j2").write_text(BROKEN)
    monkeypatch.setattr(first_minute, "SILENT_S", 0.5)
    assert started(tiny, as_json=True) == 1
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert len(problems) == 1, problems
    assert problems[0].startswith("q2: its agent on box-b has ended")
    assert "no Python here" in problems[0]
    tiny.wait_for_agents()
    assert "cell.verified" in tiny.types("q1", "a")


def test_a_box_that_cannot_take_its_queue_holds_up_no_other(
    tiny: TinyProject, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.cut = "box-a"
    assert started(tiny, as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["started"] == ["q2"]
    assert told["problems"] == ["q1: not started: box-a cannot be reached: no route"]


def test_an_earlier_drain_is_taken_back_before_the_start_and_cells_can_be_passed_over(
    tiny: TinyProject, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    project = opened(tiny)
    control.write_control(LocalSite(project, print), "box-a", "q1", "drain")
    asked.clear()
    assert started(tiny, boxes=["box-a"], start_index=1) == 0
    said = capsys.readouterr().err
    assert "--start-index 0" in said, "where nothing is left to run, that is no end"
    assert controls.wanted(project.on_tier.control("q1")) == "run"
    words = [question.NAME for _, question in asked]
    assert words.index("append") < words.index("credentials") < words.index("control")
    assert words.index("control") < words.index("start")
    (start,) = (question for _, question in asked if isinstance(question, run_asks.Start))
    assert (start.queue, start.start_index, start.start_cell) == ("q1", 1, None)


def test_the_start_index_is_kept_as_a_cells_name_also_by_the_launch_after(
    tiny: TinyProject, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = tiny.root / "queues" / "q1.txt"
    queue.write_text("configs/a.json one\nconfigs/b2.json one\n")
    (tiny.root / "configs" / "b2.json").write_text("{}")
    assert started(tiny, boxes=["box-a"], start_index=1) == 0
    journal = Journal(opened(tiny).on_tier.journal("q1"), {"queue": "q1", "box": "box-a"})
    told = {"pid": 7, "release": "ab" * 32, "start_index": 1, "start_cell": "b2"}
    journal.append("agent.started", **told)
    queue.write_text("#configs/a.json one\nconfigs/b2.json one\n")
    assert started(tiny, boxes=["box-a"]) == 0
    assert started(tiny, boxes=["box-a"], start_index=0) == 0
    starts = [question for _, question in asked if isinstance(question, run_asks.Start)]
    assert [(s.start_index, s.start_cell) for s in starts] == [(1, "b2"), (1, "b2"), (0, None)]
    said = capsys.readouterr().err
    assert "q1: starts at b2, as in the last launch" in said
    assert "q1: commented out on the tier: configs/a.json one" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"boxes": ["box-a", "box-z"]}, "has no box 'box-z' .*; it has: box-a, box-b"),
        ({"start_index": -1}, "counts cells from 0, found -1"),
        ({"environ": {}}, "MY_KEY"),
    ],
)
def test_what_a_person_has_to_mend_touches_nothing(
    tiny: TinyProject, words: dict[str, Any], told: str
) -> None:
    before = sorted(tiny.root.rglob("*"))
    with pytest.raises(InputError, match=told):
        launch(opened(tiny), **({"environ": SECRET} | words))
    assert sorted(tiny.root.rglob("*")) == before


def test_where_the_meter_runs_a_cell_needs_its_smoke_pass_before_a_box_is_asked(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.write_job(secrets=["MY_KEY"], smoke="--epochs 1")
    project = opened(tiny, "ssh")
    monkeypatch.setattr(SshSite, "refresh", None)
    monkeypatch.setattr(SshSite, "ask", None)
    before = sorted(tiny.root.rglob("*"))
    with pytest.raises(InputError, match=r"2 cells .* not passed a smoke test .*: invoke smoke"):
        launch(project, environ=SECRET)
    remembered = project.results.root / profile_choice.FILE
    written = {path for path in tiny.root.rglob("*") if path.is_file()} - set(before)
    assert written == {remembered}, "all that it leaves is where the run belongs"


def test_where_the_meter_runs_an_open_todo_of_the_artifacts_is_refused_first(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.write_job(secrets=["MY_KEY"], smoke="--epochs 1")
    with (tiny.root / "job.yaml").open("a") as file:
        file.write("\n# TODO: artifacts: which of them?\n")
    monkeypatch.setattr(SshSite, "refresh", None)
    monkeypatch.setattr(SshSite, "ask", None)
    for is_smoked in (True, False):
        with pytest.raises(InputError, match=r"an open TODO of artifacts: .*: invoke launch"):
            launch(opened(tiny, "ssh"), environ=SECRET, is_smoked=is_smoked)


def test_a_launch_that_was_refused_is_not_typed_again_on_this_machine(tiny: TinyProject) -> None:
    """As seen: the audit refused all boxes, and the next launch forgot the flag."""
    tiny.write_job(secrets=["MY_KEY"], smoke="--epochs 1")
    with pytest.raises(InputError, match="smoke test"):
        launch(opened(tiny, "ssh"), environ=SECRET)
    again = open_project(tiny.root / "job.yaml", kinds=["local", "ssh"])
    assert again.profile.name == "ssh"
    tried = "a launch with it was tried; for this machine: --profile local"
    assert again.why == f"profile ssh: {tried}"


def test_that_the_smoke_pass_was_waived_is_recorded(tiny: TinyProject, asked: Asked) -> None:
    assert started(tiny, is_smoked=False, boxes=["box-b"]) == 0
    (record,) = records(opened(tiny))
    assert record["is_smoked"] is False and record["queues"] == ["q2"]
    assert (record["not_tried"], record["skipped"]) == (2, {})


def test_what_no_smoke_knows_is_said_with_its_reason(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    short = {"add": "--epochs 1", "skip": {"a": "needs two GPUs"}}
    tiny.write_job(secrets=["MY_KEY"], smoke=short)
    project = opened(tiny, "ssh")
    module._say_unknown(project, passes.unknown(project))
    said = capsys.readouterr().err
    assert "a is launched without a smoke test: needs two GPUs" in said
    assert "1 cell was not smoke-tested" in said


def test_what_was_said_at_an_earlier_launch_is_not_said_again(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.write_job(secrets=["MY_KEY"], smoke={"add": "-s", "skip": {"*": "needs two GPUs"}})
    project = opened(tiny)
    unknown = passes.unknown(project)
    module._say_unknown(project, unknown)
    assert "a, b are launched without a smoke test: needs two GPUs" in capsys.readouterr().err
    queues = list(project.plan.queues)
    launches.append_launch(
        project.results, "local", "ab" * 32, queues, is_smoked=True, skipped=unknown.skipped
    )
    module._say_unknown(project, unknown)
    assert capsys.readouterr().err == ""
    other = replace(unknown, skipped={"a": "no GPU", "b": "needs two GPUs"})
    module._say_unknown(project, other)
    assert capsys.readouterr().err == "a is launched without a smoke test: no GPU\n"


def test_cells_that_nothing_makes_short_are_named_where_others_have_words_of_their_own(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.write_job(secrets=["MY_KEY"], smoke=None, cells={"a": {"smoke": "--epochs 1"}})
    with pytest.raises(InputError, match=r"run of b short\. ssh bills"):
        launch(opened(tiny, "ssh"), environ=SECRET)


def journals_read_by_a_launch(root: Path, queues: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a launch of so many queues reads a journal, until its first look afterwards."""
    lines = {f"q{number}": [f"configs/c{number}.json one"] for number in range(queues)}
    project = opened(make_project(root, lines))
    project.on_tier.root.mkdir(
        parents=True
    )  # as the box does for a release, which is asked of nobody
    read: list[Path] = []
    answers: dict[type, Any] = {
        run_asks.FindRelease: run_asks.FoundRelease(True, ()),
        run_asks.Prepare: run_asks.Prepared(None),
        run_asks.PointTo: run_asks.Pointed(),
        run_asks.Append: run_asks.Appended(0, "ab" * 32),
        box_asks.KeepCredentials: box_asks.CredentialsKept(()),
        run_asks.WriteControl: run_asks.ControlWritten(),
        box_asks.SeeOthers: box_asks.OthersSeen((), ()),
        run_asks.Start: run_asks.Started("tmux", 7),
        run_asks.ReadLog: run_asks.LogSlice(True, b"no Python here\n", 15, 15, False),
    }

    def count(path: Path) -> journal.Reading:
        read.append(path)
        return real(path)

    real = journal.read_journal
    with monkeypatch.context() as patch:
        patch.setattr(journal, "read_journal", count)
        asked = apart(lambda self, box, asked, **more: answers[type(asked)])
        patch.setattr(LocalSite, "ask", asked)
        patch.setattr(
            first_minute, "SILENT_S", 0.0
        )  # each has shown at the first look that it died
        assert launch(project, environ={}) == 1
    assert len(set(read)) == queues
    return len(read)


def test_the_cost_of_a_launch_grows_with_its_queues_and_not_with_their_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look before it acts, and one after: each reads every journal once."""
    assert journals_read_by_a_launch(tmp_path / "few", 2, monkeypatch) == 2 * 2
    assert journals_read_by_a_launch(tmp_path / "many", 20, monkeypatch) == 2 * 20
