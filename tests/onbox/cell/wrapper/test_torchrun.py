"""What is loaded before its turn, beside what would have been started at its turn."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from onbox.cell.wrapper.launcher import Launcher
from onbox.cell.wrapper.prepared import Prepared
from onbox.cell.wrapper.waiting import TORCHRUN

# In the place of torch's: it says how it was started, and which of its modules was there first.
STAND_IN = """\
import atexit, json, os, sys
import when

def main():
    if sys.argv[1] == "fails":
        raise RuntimeError("a rank has failed")
    said = {"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "when": when.SAID}
    said |= {"fds": sorted(os.listdir("/proc/self/fd"))[:-1], "in": sys.stdin.read()}
    said |= {"nice": os.nice(0), "oom": open("/proc/self/oom_score_adj").read()}
    atexit.register(print, "its end")
    print(json.dumps(said))

if __name__ == "__main__":
    main()
"""
WHEN = """\
import os, pathlib
SAID = "early" if "LATE" not in os.environ else "late"
pathlib.Path(__file__).with_name(f"loaded-by-{os.getpid()}").touch()
"""
MODULE = "torch.distributed.run"
RANK = """\
import os, sys, torch.distributed as dist, torch
dist.init_process_group("gloo")
sum = torch.ones(1)
dist.all_reduce(sum)
os.write(1, f"rank {os.environ['RANK']} of {int(sum)} {sys.argv[1]}\\n".encode())
dist.destroy_process_group()
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    (folder / "torch/distributed").mkdir(parents=True)
    for name, text in {"torch/distributed/run.py": STAND_IN, "when.py": WHEN}.items():
        (folder / name).write_text(text)
    for package in ("torch", "torch/distributed"):
        (folder / package / "__init__.py").touch()
    return folder


@pytest.fixture
def run(tmp_path: Path, staged: Path):
    """The exit code and the log of such a launcher, started and loaded."""

    def run(
        is_loaded: bool, words: tuple[str, ...], before: Any, environ: Any, after_s: str = "0"
    ) -> tuple[int, str]:
        argv = (sys.executable, "-m", MODULE, *words)
        one: Launcher = Launcher(argv, f"{tmp_path}:cell:1")
        if is_loaded:
            one.end()
            one = loaded(staged, tmp_path, before, after_s)
            one.argv = argv
        log = tmp_path / f"log-{is_loaded}"
        with log.open("ab") as file:
            pid = one.become(environ, file.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        Launcher.end(one)
        return code, log.read_text()

    return run


def loaded(staged: Path, tmp_path: Path, environ: dict[str, str], after_s: str = "0") -> Prepared:
    meanwhile = (sys.executable, str(staged / TORCHRUN), after_s)
    one = Prepared(f"{tmp_path}:cell:1", meanwhile, environ)
    name, maps = Path(f"/proc/{one._pid}/cmdline"), Path(f"/proc/{one._pid}/maps")
    until(lambda: TORCHRUN in name.read_text())
    stand_in = Path(environ.get("PYTHONPATH", "/none"), f"loaded-by-{one._pid}")
    if after_s == "0" and (stand_in.parent / "torch/distributed/run.py").exists():
        until(stand_in.exists)
    elif after_s == "0" and not stand_in.parent.exists():
        until(lambda: "libtorch" in maps.read_text())
    return one


def told(found: tuple[int, str]) -> Any:
    code, log = found
    line, end = log.splitlines()
    assert (code, end) == (0, "its end")
    return json.loads(line)


def test_it_is_what_would_have_been_started_and_was_loaded_before(run, library):
    before = {"PYTHONPATH": str(library), "OF_NO_CELL": "1"}
    own = {"PYTHONPATH": str(library), "LATE": "1", "OWN": "a=b \udce9"}
    words = ("--standalone", "train.py", "", "a b")
    started, loaded = (told(run(is_loaded, words, before, own)) for is_loaded in (False, True))
    assert (started.pop("when"), loaded.pop("when")) == ("late", "early")
    assert loaded == started


@pytest.mark.parametrize("name", ["PYTHONWARNINGS", "LD_LIBRARY_PATH", "TORCH_LOGS", "LANG"])
def test_what_changes_how_it_is_loaded_is_loaded_anew(run, library, name):
    before = {"PYTHONPATH": str(library)}
    own = before | {"LATE": "1", name: "ignore" if "WARN" in name else "C"}
    assert told(run(True, ("train.py",), before, own))["when"] == "late"


def test_one_that_is_let_in_before_it_was_to_load_is_started_as_ever(run, library):
    before = {"PYTHONPATH": str(library)}
    assert told(run(True, ("train.py",), before, before | {"LATE": "1"}, "3600"))["when"] == "late"


def test_what_only_the_cells_own_path_leads_to_is_found_at_its_turn(run, library, tmp_path):
    (tmp_path / "none/torch").mkdir(parents=True)
    (tmp_path / "none/torch/__init__.py").write_text("raise SystemError('is no torch')")
    before = {"PYTHONPATH": str(tmp_path / "none")}
    own = {"PYTHONPATH": str(library), "LATE": "1"}
    assert told(run(True, ("train.py",), before, own))["when"] == "late"


def test_a_launcher_that_fails_or_is_not_there_says_so_as_ever(run, library, tmp_path):
    environ = {"PYTHONPATH": str(library)}
    code, log = run(True, ("fails",), environ, environ)
    assert code == 1
    assert log.rstrip().endswith("RuntimeError: a rank has failed")
    (library / "torch/distributed/run.py").unlink()
    code, log = run(True, ("train.py",), environ, environ)
    assert code == 1
    assert "No module named torch.distributed.run" in log


def test_memory_that_runs_out_costs_what_waits_and_no_training(library, staged, tmp_path):
    one = loaded(staged, tmp_path, {"PYTHONPATH": str(library)})
    score = Path(f"/proc/{one._pid}/oom_score_adj")
    until(lambda: score.read_text() == "1000\n")
    one.end()


def test_nothing_is_written_beside_it(run, library, staged):
    before = sorted(staged.rglob("*"))
    environ = {"PYTHONPATH": str(library)}
    assert run(True, ("train.py",), environ, environ)[0] == 0
    assert sorted(staged.rglob("*")) == before


@pytest.mark.parametrize("code", [0, 3])
def test_torch_itself_runs_its_ranks_by_one_that_was_loaded(run, tmp_path, code):
    (tmp_path / "rank.py").write_text(RANK)
    words = ("--standalone", "--nproc-per-node", "2", str(tmp_path / "rank.py"), "cell", str(code))
    own = {**os.environ, "PET_LOCAL_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    found, log = run(True, words, dict(os.environ), own)
    assert found == (1 if code else 0)
    assert {"rank 0 of 2 cell", "rank 1 of 2 cell"} <= set(log.splitlines())
    assert ("exitcode  : 3" in log) == bool(code)
