"""The real launchers, newest, as an attempt starts them. docs/launchers.md has what is seen here,
and with which releases.
"""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from begun import SCRIPT, Begun
from specs import make_spec

from onbox.judging.classify import classify
from onbox.judging.verdict import Verdict

pytestmark = pytest.mark.projects
STARTED = [("accelerate", 1), ("accelerate", 2), ("deepspeed", 2), ("torchrun", 2)]
OF_SEVERAL = STARTED[1:]
CODES = {3: "EXIT3", 42: "EXIT42", 43: "EXIT43", 75: "EXIT75", 85: "UNASKED"}
# Of a script that is told to leave: longer than any launcher gives by itself to a rank it ends.
SAVES_FOR_S = "15"

Begin = Callable[..., Begun]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    begun: list[Begun] = []

    def of(launcher: str, ranks: int, *words: str) -> Begun:
        if launcher != "torchrun" and importlib.util.find_spec(launcher) is None:
            pytest.skip(f"{launcher} is not installed: `make test-projects` installs it")
        pytest.importorskip("torch")
        (tmp_path / "train.py").write_text(SCRIPT)
        command = (str(tmp_path / "train.py"), *words)
        spec = make_spec(tmp_path, launcher=launcher, ranks=ranks, words=command)
        begun.append(Begun(tmp_path, spec))
        return begun[-1]

    yield of
    for one in begun:
        one.end()


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
