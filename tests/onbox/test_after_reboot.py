"""After a reboot what ran goes on, and what had come to its end does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from boxcar.shared.disk import lock
from boxcar.shared.files.control import AgentStart
from boxcar.shared.state import Session
from onbox import after_reboot
from onbox.after_reboot import Forget, Go, Leave, decide
from onbox.answers import door

AT, BEFORE, AFTER = (f"2026-11-21T03:27:4{digit}.000Z" for digit in (5, 4, 6))
WAS = AgentStart("tiny", "q1", "box-a", "0a" * 32, "/fs", 0, ("tmux",), {}, AT)
DONE, STOPPED = "queue.done", "queue.stopped"


def session(
    at: str = AFTER, ended: str | None = None, by: str | None = None, box: str = "box-a"
) -> Session:
    # A sentence that says something else: nothing is read from it.
    return Session(at, 1, "0a" * 32, box, 0, ended, "told to end by a tired person", by)


@pytest.mark.parametrize(
    ("last", "wanted", "is_held", "step"),
    [
        pytest.param(None, "run", False, Go, id="killed before its first word"),
        pytest.param(session(), "run", False, Go, id="killed without a last word"),
        pytest.param(session(), "run", True, Leave, id="runs"),
        pytest.param(
            session(ended=DONE, by="done"), "run", True, Leave, id="runs, sending its last words"
        ),
        pytest.param(session(ended=DONE, by="done"), "run", False, Forget, id="done"),
        pytest.param(
            session(BEFORE, ended=DONE, by="done"), "run", False, Go, id="the one before was done"
        ),
        pytest.param(session(ended=STOPPED, by="trouble"), "run", False, Forget, id="gave up"),
        pytest.param(session(ended=STOPPED, by="drain"), "run", False, Forget, id="drained"),
        pytest.param(session(ended=STOPPED, by="signal"), "run", False, Go, id="shutdown"),
        pytest.param(session(), "drain", False, Leave, id="killed while it drained"),
        pytest.param(session(), "stop", False, Leave, id="killed while it stopped"),
        pytest.param(session(box="box-b"), "run", False, Forget, id="moved to another box"),
    ],
)
def test_what_is_gone_on_with(last, wanted, is_held, step):
    assert type(decide(WAS, last, wanted, is_held=is_held)) is step


def start(run: Any, detach: str = "setsid", **words: Any) -> int:
    places = {"durable_dir": run.plan.durable_dir, "data_dir": run.plan.box("box-a").data_dir}
    what = {"queue": "q1", "digest": run.release.name, "start_index": 0, "detach": [detach]}
    what |= words
    told = door.answer(json.dumps({"ask": "start", "run": "tiny", **places, **what}).encode())
    return int(told["pid"])


def resumed(run: Any) -> list[str]:
    return list(after_reboot.resume(run.scratch().data_dir))


def ended(run: Any, pid: int, until: Any) -> None:
    # A thread of it may be there for a moment after its first one is gone, and the lock with it.
    until(lambda: not run.is_alive(pid) and not lock.is_held(run.durable.lock("q1")))


def test_after_a_reboot_the_agent_goes_on_where_it_was(make_run, until):
    run = make_run({"a": {"gate": 1, "steps": 3}, "b": {}})
    pid = start(run)
    script = run.wait_for_step("a")
    run.end()
    for one in (pid, script):
        ended(run, one, until)
    run.open_gate()
    archive = next(run.release.glob("onbox-*.pyz"))
    words = [sys.executable, "-I", "-S", str(archive), "resume", "--data-dir"]
    # As cron has it: with next to nothing in the environment.
    done = subprocess.run(
        [*words, str(run.scratch().data_dir)],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/nowhere:/usr/bin:/bin"},
    )
    assert done.stdout == "tiny: q1: started again (setsid)\n"
    run.wait_for("queue.done")
    assert run.result("a")["first"] == 1
    assert run.result("b")["starts"] == 1
    path = json.loads((run.out("b") / "environment.json").read_text())["PATH"]
    assert path == os.environ["PATH"]


def test_it_begins_again_with_the_cell_that_it_began_with(make_run, until):
    """Not with its number: a line above it has a # by then."""
    run = make_run({"a": {}, "b": {"gate": 1}, "c": {}})
    pid = start(run, start_index=1, start_cell="b")
    run.wait_for_step("b")
    os.kill(pid, signal.SIGTERM)
    ended(run, pid, until)
    queue = run.durable.queue("q1")
    queue.write_text(queue.read_text().replace("configs/a", "# configs/a"))
    run.open_gate()
    assert resumed(run) == ["tiny: q1: started again (setsid)"]
    run.wait_for("queue.done")
    assert [run.state(cell) for cell in "abc"] == ["queued", "verified", "verified"]


def test_an_agent_that_a_shutdown_told_to_end_goes_on(make_run, until):
    run = make_run({"a": {"gate": 1}})
    pid = start(run)
    run.wait_for_step("a")
    os.kill(pid, signal.SIGTERM)
    ended(run, pid, until)
    assert run.events("queue.stopped")
    run.open_gate()
    assert resumed(run) == ["tiny: q1: started again (setsid)"]
    run.wait_for("queue.done")


def test_what_has_come_to_its_end_is_not_begun_again(make_run, until):
    run = make_run({"a": {}})
    ended(run, start(run), until)
    [told] = resumed(run)
    assert told == "tiny: q1: is not started again: it has ended: queue.done"
    assert not run.scratch().start("q1").exists()
    assert resumed(run) == []
    assert len(run.events("agent.started")) == 1


def test_a_person_who_asked_it_to_end_is_obeyed(make_run, until):
    run = make_run({"a": {"gate": 1}})
    pid = start(run)
    run.wait_for_step("a")
    run.ask("drain")
    os.kill(pid, signal.SIGKILL)
    ended(run, pid, until)
    run.end()
    assert resumed(run) == ["tiny: q1: is left alone: it was asked to drain"]
    assert len(run.events("agent.started")) == 1


def test_twice_at_once_starts_it_once(make_run, until):
    run = make_run({"a": {"gate": 1}})
    pid = start(run)
    script = run.wait_for_step("a")
    run.end()
    for one in (pid, script):
        ended(run, one, until)
    archive = next(run.release.glob("onbox-*.pyz"))
    words = [sys.executable, "-I", "-S", str(archive), "resume", "--data-dir"]
    both = [
        subprocess.Popen([*words, str(run.scratch().data_dir)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [one.communicate()[0] for one in both]
    assert sum("started again" in line for line in told) == 1
    assert sum("its agent is running" in line for line in told) == 1
    run.open_gate()
    run.wait_for("queue.done")
    assert len(run.events("agent.started")) == 2


def test_what_cannot_be_resumed_is_said_and_holds_up_no_other(make_run, until, tmp_path):
    run = make_run({"a": {}})
    ended(run, start(run), until)
    run.scratch().start("a-bad-one").write_bytes(b"")
    before = run.scratch().start("q1").read_bytes()
    (tmp_path / "tier").rename(tmp_path / "unmounted")
    bad, away = resumed(run)
    assert "a-bad-one: was not resumed" in bad
    assert "q1: was not resumed" in away and "mounted?" in away
    assert run.scratch().start("q1").read_bytes() == before
    assert not (tmp_path / "tier").exists()


def test_a_box_on_which_nothing_was_started_is_well(tmp_path):
    assert list(after_reboot.resume(tmp_path)) == []


def test_a_box_that_lost_its_secrets_starts_nothing_without_them(make_run, until):
    run = make_run({"a": {"gate": 1}}, secrets=("WANDB_API_KEY",))
    pid = start(run)
    script = run.wait_for_step("a")
    run.end()
    for one in (pid, script):
        ended(run, one, until)
    (told,) = resumed(run)
    assert "its secrets are gone" in told and "invoke launch" in told
    assert not lock.is_held(run.durable.lock("q1"))
