"""The real launchers, newest, by the words that run_one.sh starts them with. docs/launchers.md has
what is seen here, and with which releases.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from begun import SCRIPT, Begun
from plans import make_plan

from boxcar.laptop.release import wrappers
from boxcar.shared.cell import said
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.said import Places
from boxcar.shared.files.plan import Box
from boxcar.shared.paths import ScratchPaths
from onbox.cell import wrapper_words
from onbox.cell.attempt import Attempt
from onbox.cell.wrapper.words import Words, _attempt
from onbox.judging.classify import classify
from onbox.judging.verdict import Verdict

pytestmark = pytest.mark.projects
STARTED = [("accelerate", 1), ("accelerate", 2), ("deepspeed", 2), ("torchrun", 2)]
OF_SEVERAL = STARTED[1:]
CODES = {3: "EXIT3", 42: "EXIT42", 43: "EXIT43", 75: "EXIT75", 85: "UNASKED"}
# Of a script that is told to leave: longer than any launcher gives by itself to a rank it ends.
SAVES_FOR_S = "15"
# The agent's Python writes down what it was started with.
DUMPS = """\
#!/bin/sh
env -0 >"{dump}.env"
printf '%s\\0' "$@" >"{dump}"
"""

Begin = Callable[..., Begun]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    begun: list[Begun] = []

    def of(launcher: str, ranks: int, *words: str) -> Begun:
        if launcher != "torchrun" and importlib.util.find_spec(launcher) is None:
            pytest.skip(f"{launcher} is not installed: `make test-projects` installs it")
        pytest.importorskip("torch")
        (tmp_path / "train.py").write_text(SCRIPT)
        one, env = _as_run_one_starts_it(
            tmp_path, launcher, ranks, (str(tmp_path / "train.py"), *words)
        )
        begun.append(Begun(tmp_path, one, env))
        return begun[-1]

    yield of
    for one in begun:
        one.end()


def _as_run_one_starts_it(
    folder: Path, launcher: str, ranks: int, command: tuple[str, ...]
) -> tuple[Attempt, dict[str, str]]:
    agent, dump = folder / "python-of-agent", folder / "dumped"
    agent.write_text(DUMPS.format(dump=dump))
    agent.chmod(0o755)
    plan = replace(
        make_plan(),
        boxes=(Box("box", str(folder / "data"), str(folder / "none.json")),),
        queues={"queue": "box"},
        durable_dir=str(folder / "durable"),
        agent_python=str(agent),
        training_python=sys.executable,
        launcher=launcher,
        command=command,
    )
    release = folder / "releases" / "0a1b"
    release.mkdir(parents=True)
    text = wrappers.render_run_one(plan, "", "onbox-1.pyz", "training-1.zip", None)
    (release / "run_one.sh").write_text(text)
    scratch, cell = ScratchPaths(folder / "data", plan.run), CellLine(0, 1, "a", "a.json", "t", 1)
    code, out = scratch.code(release.name), str(scratch.out("a"))
    code.mkdir(parents=True)
    what = said.say(plan, cell, Places(out, str(code), said.resume_place(out, plan.resume)))
    words = wrapper_words.of_attempt("box", "a", 1, what, ranks)
    subprocess.run(["bash", str(release / "run_one.sh"), *words], check=True)
    env = dict(pair.split("=", 1) for pair in Path(f"{dump}.env").read_text().split("\0") if pair)
    _, _, _, _, *argv = dump.read_text().split("\0")[:-1]
    return _attempt(Words(argv)), env


def verdict_of(one: Begun, launcher: str) -> Verdict:
    return classify(one.ended(), one.log, [], launcher=launcher)


def pids(ranks: int) -> list[str]:
    return [f"pid{rank}" for rank in range(ranks)]


@pytest.mark.parametrize(("launcher", "ranks"), STARTED)
def test_told_to_stop_each_rank_saves_for_as_long_as_it_takes(
    launcher: str, ranks: int, begin: Begin
) -> None:
    one = begin(launcher, ranks, "85", SAVES_FOR_S)
    one.wait_for(*pids(ranks))
    one.tell()
    verdict = verdict_of(one, launcher)
    assert [(one.has_saved(rank), one.told(rank)) for rank in range(ranks)] == [(True, 1)] * ranks
    assert verdict.failure == "EXIT85"


@pytest.mark.parametrize(("launcher", "ranks"), STARTED)
@pytest.mark.parametrize("code", CODES)
def test_the_scripts_own_exit_code_arrives(
    launcher: str, ranks: int, code: int, begin: Begin
) -> None:
    one = begin(launcher, ranks, str(code), "0", "--ends")
    assert verdict_of(one, launcher).failure == CODES[code]


@pytest.mark.parametrize(("launcher", "ranks"), STARTED)
def test_an_end_without_fault_is_one(launcher: str, ranks: int, begin: Begin) -> None:
    one = begin(launcher, ranks, "0", "0", "--ends")
    done = one.ended()
    assert (done.rc, done.ranks_alive) == (0, None)


@pytest.mark.parametrize(("launcher", "ranks"), STARTED)
def test_a_killed_rank_is_known_by_its_signal(launcher: str, ranks: int, begin: Begin) -> None:
    one = begin(launcher, ranks, "0", "0")
    one.wait_for(*pids(ranks))
    os.kill(int((one.folder / "pid0").read_text()), signal.SIGKILL)
    assert verdict_of(one, launcher).failure == "137-N"


@pytest.mark.parametrize(("launcher", "ranks"), OF_SEVERAL)
def test_a_killed_launcher_is_no_success(launcher: str, ranks: int, begin: Begin) -> None:
    one = begin(launcher, ranks, "0", "0")
    one.wait_for(*pids(ranks))
    rank = int((one.folder / "pid0").read_text())
    parent = int(Path(f"/proc/{rank}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    assert verdict_of(one, launcher).failure == "137-N"
