"""Programs that were left behind by one that was let in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gated import GATED, at_gate, open_gate, said
from waiting import LIMIT_S

from boxcar.shared.disk import lock
from boxcar.shared.files import attempt
from boxcar.shared.files.release import RUN_ONE
from onbox.cell.wrapper import waiting
from onbox.cell.wrapper.ahead import Ahead
from onbox.cell.wrapper.heir import Heir
from onbox.machine import process


class Box:
    """A run whose code is staged, and the test as its agent."""

    def __init__(self, run: Any) -> None:
        self.run, self.ahead = run, Ahead()

    def command(self, cell: str) -> list[str]:
        folder = self.run.scratch().wrapper(self.run.release.name)
        return ["bash", str(folder / RUN_ONE), *self.run.words_of_attempt(cell)]

    def start(self, cell: str) -> None:
        self.ahead.start(self.command(cell), loads_after_s=None)

    def let_in(self, cell: str, *, leaves_heir: bool = True) -> Any:
        self.run.scratch().cell(cell).mkdir()
        return self.ahead.let_in(self.command(cell), leaves_heir=leaves_heir)

    @property
    def heir(self) -> Heir:
        assert isinstance(self.ahead._child, Heir)
        return self.ahead._child

    def rc(self, cell: str) -> int:
        done = attempt.read_done(self.run.scratch().done(cell, 1))
        assert done
        return done.rc


@pytest.fixture
def box(make_run: Any) -> Iterator[Box]:
    cells = {name: {"gate": 1} for name in ("first", *"abcd")}
    run = make_run(cells, is_hurried=False, train=GATED, resume=None)
    run.durable.queue("q1").write_text("configs/first.json count 3\n")
    open_gate(run, "first")
    assert run.finish() == 0
    process.adopt_orphans()
    one = Box(run)
    yield one
    for cell in cells:
        open_gate(run, cell)
    one.ahead.close()
    process._prctl(process._PR_SET_CHILD_SUBREAPER, 0)


def test_each_cell_is_run_by_what_the_one_before_has_left_and_finds_nothing_of_it(box, until):
    box.start("a")
    for cell in "abcd":
        if cell != "a":
            until(box.heir.has_come)
        child = box.let_in(cell)
        assert isinstance(child, subprocess.Popen if cell == "a" else Heir)
        until((box.run.out(cell) / "said.json").exists)
        running = attempt.read_running(box.run.scratch().running(cell))
        assert running
        assert running.pid == child.pid
        open_gate(box.run, cell)
        assert child.wait() == 0
        assert box.rc(cell) == 0
        assert said(box.run, cell) == said(box.run, "first")


def test_an_heir_holds_nothing_of_the_cell_beside_which_it_waits(box, until):
    box.start("a")
    child = box.let_in("a")
    until((box.run.out("a") / "said.json").exists)
    until(box.heir.has_come)
    log = box.run.scratch().log("a")
    assert lock.is_held(log)
    heir = box.heir.pid
    files = {str(link.readlink()) for link in Path(f"/proc/{heir}/fd").iterdir()}
    assert not [name for name in files if str(box.run.root) in name]
    assert heir not in process.orphans("0"), "it is no leftover of a cell"
    assert heir not in process.descendants(child.pid)
    for pid in (child.pid, *process.descendants(child.pid)):
        os.kill(pid, signal.SIGKILL)
    child.wait()
    until(lambda: not lock.is_held(log))
    assert box.heir.has_come()


def test_what_was_said_at_once_behind_a_cells_words_is_for_the_heir(box, until):
    box.start("a")
    waits, python = box.ahead._child, box.run.plan.training_python
    until(lambda: box.ahead.comes_to_gate(box.command("b"), python, {}))
    os.kill(waits.pid, signal.SIGSTOP)
    box.let_in("a")
    box.ahead.expect(box.command("b"), python, {}, is_any_alike=False)
    os.kill(waits.pid, signal.SIGCONT)
    until(lambda: at_gate(box.run, "b"), "a Python at its gate")
    until(box.heir.has_come)
    box.let_in("b", leaves_heir=False)
    until((box.run.out("b") / "said.json").exists)
    assert box.ahead._child is None
    assert said(box.run, "b") == said(box.run, "first")


def test_an_heir_ends_with_the_agent(box, until):
    box.start("a")
    box.let_in("a")
    until(box.heir.has_come)
    heir = box.heir.pid
    box.ahead.close()
    assert process.start_time(heir) is None


def test_a_program_that_is_not_there_any_more_is_started_anew(box, until):
    box.start("a")
    box.let_in("a")
    until(box.heir.has_come)
    heir = box.heir
    os.kill(heir.pid, signal.SIGKILL)
    until(lambda: heir.poll() is not None)
    box.start("b")
    assert isinstance(box.ahead._child, subprocess.Popen)


def test_an_heir_that_was_killed_is_not_let_in(box, until):
    box.start("a")
    box.let_in("a")
    until(box.heir.has_come)
    os.kill(box.heir.pid, signal.SIGKILL)
    until(lambda: not box.heir.has_come())
    assert box.let_in("b") is None
    assert not box.run.scratch().log("b").exists()


def test_an_heir_that_came_to_somebody_else_is_not_let_in(box, until):
    process._prctl(process._PR_SET_CHILD_SUBREAPER, 0)
    box.start("a")
    box.let_in("a")
    until(lambda: box.heir.poll() is not None)
    assert not box.heir.has_come()
    assert box.let_in("b") is None


def test_who_can_leave_no_heir_runs_its_cell(monkeypatch):
    def refused() -> int:
        raise BlockingIOError("no room for another process")

    monkeypatch.setattr(os, "fork", refused)
    assert waiting.is_heir() is False


def heir_of(text: str) -> tuple[Heir, subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin and child.stdout
    return Heir(child.stdin, child.stdout), child


SAYS = "import os, sys; os.write(1, str(os.getpid()).encode()); "


def test_the_exit_code_is_that_of_the_process_however_often_it_is_asked(until):
    heir, _ = heir_of(SAYS + "sys.stdin.read(); sys.exit(7)")
    until(heir.has_come)
    assert heir.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        heir.wait(0.01)
    heir.stdin.close()
    assert [heir.wait(), heir.wait(LIMIT_S), heir.poll()] == [7, 7, 7]


def test_one_that_says_nothing_has_not_come_and_is_gone_once_it_cannot_say_anything(until):
    heir, child = heir_of("import os, sys; sys.stdin.read()")
    assert not heir.has_come()
    assert heir.poll() is None
    heir.stdin.close()
    assert heir.wait(LIMIT_S) == -signal.SIGKILL
    assert not heir.has_come()
    child.wait()


def test_one_that_says_nothing_and_does_not_end_is_given_up():
    heir, child = heir_of("import time; time.sleep(600)")
    heir.kill()
    assert heir.wait() == -signal.SIGKILL
    child.kill()
    child.wait()
