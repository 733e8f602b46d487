"""Launchers as small scripts: what they start is what is told apart."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from begun import Begun
from specs import make_spec
from waiting import LIMIT_S, until

from boxcar.shared.files import attempt
from boxcar.shared.paths import ScratchPaths
from onbox.attempt import watch
from onbox.machine import process

# launcher.py WORLD LEVELS script.py: starts the script as WORLD ranks, or plainly where it is 0.
LAUNCHER = """\
import os, subprocess, sys
size, levels, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
if levels:
    again = [sys.executable, __file__, str(size), str(levels - 1), *command]
    sys.exit(subprocess.run(again).returncode)
worlds = [dict(RANK=str(n), LOCAL_RANK=str(n), WORLD_SIZE=str(size)) for n in range(size)]
script = [sys.executable, "-u", *command]
ranks = [subprocess.Popen(script, env=os.environ | own) for own in worlds or [{}]]
sys.exit(max(rank.wait() for rank in ranks))
"""
SCRIPT = "import sys; sys.stdin.read()"
# A script that starts ranks of its own, as a hyperparameter search does.
NESTED = """\
import os, subprocess, sys
own = dict(RANK="0", LOCAL_RANK="0", WORLD_SIZE="7")
subprocess.run([sys.executable, "-c", "import sys; sys.stdin.read()"], env=os.environ | own)
"""

Start = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a launcher as above; its pid and its command."""
    started: list[subprocess.Popen[bytes]] = []

    def launch(
        size: int, *, levels: int = 0, script: str = SCRIPT, env: dict[str, str] | None = None
    ) -> tuple[int, list[str]]:
        (tmp_path / "launcher.py").write_text(LAUNCHER)
        (tmp_path / "train.py").write_text(script)
        words = [str(tmp_path / "launcher.py"), str(size), str(levels), str(tmp_path / "train.py")]
        argv = [sys.executable, *words]
        started.append(
            subprocess.Popen(argv, stdin=subprocess.PIPE, env={**os.environ, **(env or {})})
        )
        return started[-1].pid, argv

    yield launch
    for one in started:
        one.communicate(timeout=LIMIT_S)  # what it started waits for the end of this pipe


@pytest.mark.parametrize(
    ("size", "levels", "formed"), [(2, 0, 2), (2, 1, 2), (1, 0, 1), (1, 1, 1), (0, 0, 1)]
)
def test_the_ranks_say_how_many_they_are(start, size, levels, formed):
    pid, argv = start(size, levels=levels)
    until(lambda: watch.formed(pid, argv) is not None)
    assert watch.formed(pid, argv) == formed
    assert watch.formed(pid, argv, is_quick=True) == formed


def test_ranks_that_a_script_starts_itself_are_not_the_launcher_s(start):
    pid, argv = start(2, script=NESTED)
    until(lambda: watch.formed(pid, argv) is not None)
    assert watch.formed(pid, argv) == 2


def test_a_world_that_the_platform_preset_is_nobody_s(start):
    pid, argv = start(0, env={"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8"})
    until(lambda: watch.formed(pid, argv) is not None)
    assert watch.formed(pid, argv) == 1


@pytest.mark.parametrize("at_its_exec", [{}, {"PATH": "/bin", "RANK": "0", "WORLD_SIZE": "2"}])
def test_a_rank_that_is_just_about_to_exec_is_no_plain_script(monkeypatch, at_its_exec):
    """Seen on a busy machine: its environment was read before its exec, its words after it, and a
    cell of two ranks failed for good as one of one rank.
    """
    launchers = {"PATH": "/bin"}
    seen = iter([launchers, launchers, at_its_exec])  # the launcher's; the rank's, twice
    monkeypatch.setattr(process, "generations", lambda pid: iter([[8]]))
    monkeypatch.setattr(process, "environment", lambda pid: next(seen))
    monkeypatch.setattr(process, "words", lambda pid: ["python", "-u", "train.py"])
    assert watch.formed(7, ["python", "-m", "launcher", "train.py"]) is None


def test_a_child_that_still_has_its_launchers_words_is_no_plain_script(monkeypatch):
    """Between its fork and its exec: seen on a busy machine, of torchrun, which begins by -m."""
    argv = ["python", "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py"]
    monkeypatch.setattr(process, "generations", lambda pid: iter([[8]]))
    monkeypatch.setattr(process, "environment", lambda pid: {"PATH": "/bin"})
    monkeypatch.setattr(process, "words", lambda pid: argv)
    assert watch.formed(7, argv) is None


def test_a_launcher_that_has_started_nothing_leaves_it_open(start):
    assert watch.formed(os.getpid(), ["python", "no_such_script.py"]) is None


def run_attempt(
    tmp_path: Path,
    ranks: int | None,
    size: int,
    script: str = "import time; time.sleep(2 * 60)",
    launcher: str = LAUNCHER,
) -> attempt.Done | None:
    (tmp_path / "launcher.py").write_text(launcher)
    (tmp_path / "train.py").write_text(script if ranks else "")
    argv = [sys.executable, str(tmp_path / "launcher.py"), str(size), "0"]
    asked = {"launcher": "torchrun", "ranks": ranks} if ranks else {}
    one = Begun(tmp_path, make_spec(tmp_path, **asked), argv=[*argv, str(tmp_path / "train.py")])
    return one.ended()


def test_an_attempt_with_another_world_than_it_was_asked_for_is_ended(tmp_path):
    done = run_attempt(tmp_path, ranks=2, size=0)
    assert done is not None
    assert (done.ranks_asked, done.ranks_formed, done.was_told_to_stop) == (2, 1, False)
    assert done.rc != 0
    log = ScratchPaths(tmp_path / "data", "tiny").log("a").read_text()
    assert "asked for 2 ranks and formed 1" in log


def test_however_short_the_script_is_fewer_ranks_are_no_success(tmp_path):
    """The launcher is there for a while, as those that import torch are, and its script is not. On
    a busy machine one may be missed, but not five in a row.
    """
    launcher = (
        "import subprocess, sys, time; time.sleep(1)\n"
        "sys.exit(subprocess.run([sys.executable, '-u', *sys.argv[3:]]).returncode)\n"
    )
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = run_attempt(folder, ranks=2, size=0, script="pass", launcher=launcher)
        assert done is not None
        if done.ranks_formed == 1:
            return
    pytest.fail("one rank of two came and went five times, and nobody saw it")


def test_a_launcher_that_is_asked_for_no_ranks_is_left_alone(tmp_path):
    done = run_attempt(tmp_path, ranks=None, size=0)
    assert done is not None
    assert (done.rc, done.ranks_asked, done.ranks_formed) == (0, None, None)
