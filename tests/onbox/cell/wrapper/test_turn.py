"""A program that waits, from the words of its cell until it is told to go, or is not."""

from __future__ import annotations

import math
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from gated import open_gate, said
from waiting import LIMIT_S

from boxcar.shared.disk import lock
from boxcar.shared.files import attempt
from onbox.cell import attempt as wrapper
from onbox.cell.wrapper import waiting
from onbox.cell.wrapper.program import TURN
from onbox.cell.wrapper.turn import Turn
from onbox.machine import cgroup, process


def written(box, cell: str) -> list[str]:
    """What there is of the cell beside its folder."""
    folder = box.run.scratch().cell(cell)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def called(box, until, cell: str) -> Path:
    """The cell's log, once the program that was called holds it."""
    box.call(cell)
    log = box.run.scratch().log(cell)
    until(lambda: log.exists() and lock.is_held(log))
    return log


def test_who_is_called_holds_the_log_and_writes_nothing_until_it_is_told_to_go(box, until):
    box.start("a")
    box.call("a")
    log = box.run.scratch().log("a")
    until(lambda: log.exists() and lock.is_held(log))
    assert written(box, "a") == [log.name]
    assert log.read_text() == ""
    child = box.ahead.go()
    until((box.run.out("a") / "said.json").exists)
    running = attempt.read_running(box.run.scratch().running("a"))
    assert running and running.pid == child.pid
    open_gate(box.run, "a")
    assert child.wait() == 0
    assert said(box.run, "a") == said(box.run, "first")


def test_who_is_not_told_to_go_ends(box, until):
    """As where the agent is killed, or could not write that the attempt starts."""
    box.start("a")
    waits = box.ahead._child
    log = called(box, until, "a")
    box.ahead.give_up()
    assert waits.wait(LIMIT_S) == 0
    until(lambda: not lock.is_held(log))
    until(lambda: not [pid for pid in process.descendants(os.getpid()) if is_ours(box, pid)])
    assert written(box, "a") == [log.name]
    assert log.read_text() == ""
    assert box.ahead.go() is None


def is_ours(box, pid: int) -> bool:
    return any(str(box.run.root) in word for word in process.words(pid))


def test_a_cell_whose_program_was_given_up_is_run_by_another(box, until):
    box.start("a")
    box.call("a")
    box.ahead.give_up()
    box.start("a")
    box.ahead.call(box.command("a"))
    child = box.ahead.go()
    until((box.run.out("a") / "said.json").exists)
    open_gate(box.run, "a")
    assert child.wait(LIMIT_S) == 0
    assert box.rc("a") == 0


def test_an_older_agents_words_are_at_once_its_word_to_go(box, until):
    box.start("a")
    box.run.scratch().cell("a").mkdir()
    assert box.ahead._say(waiting.LET_IN, box.command("a")[2:])
    until((box.run.out("a") / "said.json").exists)
    open_gate(box.run, "a")
    assert box.ahead._child.wait(LIMIT_S) == 0
    assert box.rc("a") == 0


def test_an_older_releases_program_is_told_nothing_before_it_may_go(box, until, monkeypatch):
    (box.run.scratch().wrapper(box.run.release.name) / TURN).unlink()
    box.start("a")
    told, say = [], box.ahead._say
    monkeypatch.setattr(box.ahead, "_say", lambda *what: told.append(what[0]) or say(*what))
    box.call("a")
    assert told == []
    child = box.ahead.go()
    assert told == [waiting.LET_IN]
    assert isinstance(child, subprocess.Popen)
    until((box.run.out("a") / "said.json").exists)


def test_one_that_was_not_called_is_not_told_to_go(box):
    box.start("a")
    box.call("a")
    box.ahead.give_up()
    box.start("a")
    assert box.ahead.go() is None
    assert box.ahead._child is None


@pytest.mark.parametrize(
    ("told", "may"),
    [(waiting.GO, True), (waiting.LET_IN, False), (waiting.CALLS, False), (None, False)],
)
def test_only_its_word_to_go_lets_it_go(told, may):
    said = SimpleNamespace(next=lambda: told and (told, []), close=lambda: None)
    assert Turn(said).may_go() is may


def empty_groups() -> set[Path]:
    """In the kernel's group of this process: what somebody has left. Tests that run beside this one
    make theirs there, too, which have a process a moment later.
    """
    there = Path(cgroup._own() or "/none").glob("boxcar-*")
    return {group for group in there if not cgroup.members(str(group))}


def children() -> set[int]:
    """Also those that have ended and were not waited for."""
    return {
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/stat")
        if int(path.read_text().rpartition(")")[2].split()[1]) == os.getpid()
    }


def test_nothing_is_left_of_those_that_were_given_up(box, until):
    before, before_empty = children(), empty_groups()
    box.run.scratch().cell("a").mkdir()
    log = box.run.scratch().log("a")
    for _ in range(3):
        box.start("a")
        box.ahead.call(box.command("a"))
        until(lambda: log.exists() and lock.is_held(log))
        box.ahead.give_up()
        until(lambda: not lock.is_held(log))
    box.ahead.close()
    assert children() == before
    until(lambda: empty_groups() <= before_empty)


def test_one_that_died_before_its_word_to_go_is_none(box, until):
    box.start("a")
    waits = box.ahead._child
    called(box, until, "a")
    waits.kill()
    until(lambda: waits.poll() is not None)
    assert box.ahead.go() is None
    assert box.ahead._child is None


def test_what_is_wrong_with_its_secrets_is_said_at_its_turn(box, until):
    credentials = box.run.root / "box-a.credentials.json"
    credentials.touch(mode=0o600)
    credentials.write_text("{ damaged")
    box.start("a")
    log = called(box, until, "a")
    assert log.read_text() == ""
    child = box.ahead.go()
    assert child.wait(LIMIT_S) != 0
    assert "=== attempt 1" in log.read_text()
    assert "not a JSON document" in log.read_text()
    assert (box.run.scratch().running("a")).exists()


def test_the_time_of_an_attempt_runs_from_its_start(monkeypatch):
    monkeypatch.setattr(wrapper.signal, "signal", lambda *of: None)
    now_s = [100.0]
    monkeypatch.setattr(wrapper.time, "monotonic", lambda: now_s[0])
    stop = wrapper._Stop(SimpleNamespace(limit_s=5))
    now_s[0] += 10
    assert stop.look_at_clock() == math.inf
    stop.watch(0)
    assert stop.look_at_clock() == 5
    now_s[0] += 6
    stop._launcher = None
    stop.look_at_clock()
    assert stop.is_over_time
