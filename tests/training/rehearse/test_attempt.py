"""Real processes, really killed: what a start leaves is nothing but its files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from boxcar.shared.disk import lock
from boxcar.shared.errors import InputError
from boxcar.training.rehearse.observer import Kill
from boxcar.training.rehearse.two_runs import Attempt, Command, run_start, tail

# Reports a step every few milliseconds and saves at each; beside it sits a child in a session of
# its own, as torchrun's ranks are.
SCRIPT = """
import json, os, pathlib, subprocess, sys, time
out = pathlib.Path(os.environ["BOXCAR_OUT"])
child = [sys.executable, "-c", "import time; time.sleep(60)"]
if "--child" in sys.argv:
    child = subprocess.Popen(child, start_new_session=True)
    (out / "child").write_text(str(child.pid))
print("begun", flush=True)
for step in range(1, int(sys.argv[1]) + 1):
    (out / "latest.pth").write_text(str(step))
    with (out / "progress.jsonl").open("a") as file:
        print(json.dumps({"step": step}), file=file)
    time.sleep(0.005)
sys.exit(int(sys.argv[2]))
"""


def interrupt(text: str) -> None:
    if "no step" not in text:
        raise KeyboardInterrupt


class Cell:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.said: list[str] = []
        self.say: Callable[[str], None] = self.said.append
        (root / "out").mkdir()
        (root / "train.py").write_text(SCRIPT)

    def live(self, *words: str, kill: Kill | None = None, timeout_s: float = 30.0) -> Attempt:
        out = self.root / "out"
        environment = {**os.environ, "BOXCAR_OUT": str(out)}
        command = Command(
            [sys.executable, "-u", "train.py", *words],
            self.root,
            out,
            "latest.pth",
            environment,
            timeout_s,
        )
        return run_start(command, self.root / "x.log", kill, self.say)

    @property
    def is_child_alive(self) -> bool:
        stat = Path("/proc", (self.root / "out" / "child").read_text(), "stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    return Cell(tmp_path)


def test_a_run_that_ends_well_has_shown_all_its_steps(cell: Cell) -> None:
    ended = cell.live("5", "0")
    assert (ended.code, ended.problem, ended.seen.last_step) == (0, "", 5)
    assert ended.seen.saves
    assert tail(ended.log) == ["begun"]


def test_a_kill_comes_once_its_step_is_reported(cell: Cell) -> None:
    killed = cell.live("10000", "0", kill=Kill(0.0, after_step=4))
    assert killed.code is None and killed.problem == ""
    assert 4 <= (killed.seen.last_step or 0) < 10000


def test_a_kill_by_time_needs_no_step(cell: Cell) -> None:
    assert cell.live("10000", "0", kill=Kill(0.05)).code is None


def test_a_kill_may_wait_for_a_number_of_saves(cell: Cell) -> None:
    killed = cell.live("10000", "0", kill=Kill(0.0, after_saves=3))
    assert killed.code is None and len(killed.seen.saves) >= 3


def test_a_kill_that_came_too_late_is_a_good_end(cell: Cell) -> None:
    assert cell.live("3", "0", kill=Kill(0.0, after_step=100)).code == 0


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_a_kill_reaches_ranks_in_sessions_of_their_own(cell: Cell) -> None:
    cell.live("10000", "0", "--child", kill=Kill(0.0, after_step=2))
    assert not cell.is_child_alive
    assert not lock.is_held(cell.root / "x.log")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_what_a_finished_run_left_behind_is_ended_too(cell: Cell) -> None:
    assert cell.live("2", "0", "--child").code == 0
    assert not cell.is_child_alive


def test_a_bad_end_is_told(cell: Cell) -> None:
    assert cell.live("2", "7").problem == "ended with exit code 7"


def test_a_run_that_hangs_is_ended_and_told(cell: Cell) -> None:
    late = cell.live("10000", "0", timeout_s=0.2)
    assert late.is_late and "had not ended after" in late.problem


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_an_interrupted_rehearsal_leaves_nothing_alive(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boxcar.training.rehearse.two_runs.SAY_EVERY_S", 0.05)
    cell.say = interrupt
    with pytest.raises(KeyboardInterrupt):
        cell.live("10000", "0", "--child")
    assert not cell.is_child_alive


def test_a_command_that_is_not_there_is_the_persons_mistake(cell: Cell) -> None:
    command = Command(["no-such-program"], cell.root, cell.root / "out", "latest.pth", {}, 5.0)
    with pytest.raises(InputError, match="no-such-program: cannot be started"):
        run_start(command, cell.root / "x.log", None, cell.say)


def test_a_long_run_gives_signs_of_life(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxcar.training.rehearse.two_runs.SAY_EVERY_S", 0.02)
    cell.live("20", "0")
    assert any("step" in text for text in cell.said)
