from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_project import make_project
from waiting import LIMIT_S, until

from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.tryout import memory, passes, stage
from boxcar.laptop.tryout.passes import measured, missing
from boxcar.laptop.verbs.smoke import smoke
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.files.receipt import Teardown

# Notes what it was given beside the project; does what its config says.
TRAIN = """
import ctypes, json, os, sys, time
from pathlib import Path

arguments = sys.argv[1:]
config = json.loads(Path(arguments[0]).read_text())
seen = {"arguments": arguments, "cwd": os.getcwd(), "environ": dict(os.environ)}
with open(config["notes"], "a") as notes:
    print(json.dumps(seen), file=notes)
print(config.get("says", "a line of the log"), flush=True)
if config.get("hangs"):
    time.sleep(60)
if config.get("aborts", 0) >= len(Path(config["notes"]).read_text().splitlines()):
    terminate = ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev
    last = ctypes.cast(terminate, ctypes.c_void_p)
    ctypes.CDLL(None).__cxa_atexit(last, None, None)
if config.get("exit_code"):
    print("KeyError: 'no such key'", file=sys.stderr)
    sys.exit(config["exit_code"])
import helper
Path("litter").touch()
out = Path(arguments[2])
for name in config.get("writes", ["model.json", "metrics.json"]):
    (out / name).write_text(config.get("holds", "[1, 2, 3]"))
"""
COMMAND = "train.py {cfg} {task} {out} --epochs {epochs} --name {name}"
QUEUES = {"q1": ["configs/a.json recon 5", "configs/b.json recon 5"], "q2": ["configs/c.json seg"]}


class Tried:
    """A project, and what its script noted whenever it was started."""

    def __init__(self, root: Path, **job: Any) -> None:
        self.root = root
        given = {"command": COMMAND, "smoke": "--limit 2 '--note={task} x'", "resume": None} | job
        self.tiny = make_project(root, QUEUES, **given)
        self.notes = root.with_name("notes")
        (root / "train.py").write_text(TRAIN)
        (root / "helper.py").touch()
        for name in "abc":
            self.config(name)

    def config(self, name: str, **config: Any) -> None:
        self.tiny.write_config(name, notes=str(self.notes), own=f"is-{name}", **config)

    @property
    def project(self) -> Project:
        return open_project(self.root / "job.yaml", "local")

    @contextlib.contextmanager
    def hanging(self) -> Iterator[subprocess.Popen[bytes]]:
        """A smoke of its own process, whose try is at work and does not end."""
        self.config("a", hangs=True)
        words = ["-c", "from boxcar.cli import program; program.run()", "smoke", "--cell", "a"]
        with subprocess.Popen([sys.executable, *words], cwd=self.root) as verb:
            try:
                log = self.root / ".boxcar/smoke/tiny/cells/a/a.log"
                until(lambda: log.exists() and b"a line" in log.read_bytes(), "the try is at work")
                yield verb
            finally:
                verb.kill()

    @property
    def starts(self) -> list[dict[str, Any]]:
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [json.loads(line) for line in lines]

    @property
    def started(self) -> list[str]:
        return [Path(start["arguments"][0]).stem for start in self.starts]


@pytest.fixture
def tried(tmp_path: Path) -> Iterator[Tried]:
    yield Tried(tmp_path / 'it\'s a "project"')


def test_every_cell_runs_with_the_smoke_words_and_passes(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    assert missing(tried.project) == ["a", "b", "c"]
    assert smoke(tried.project) == 0
    assert tried.started == ["a", "b", "c"]
    cells = tried.root / ".boxcar" / "smoke" / "tiny" / "cells"
    words = ["configs/c.json", "seg", str(cells / "c" / "out"), "--epochs", "2", "--name", "c"]
    assert tried.starts[2]["arguments"] == [*words, "--limit", "2", "--note=seg x"]
    assert missing(tried.project) == []
    assert "passed" in capsys.readouterr().out


def test_a_try_sees_no_gpu_no_logger_and_nothing_of_the_shell(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_DATA", "/only/here")
    monkeypatch.setenv("A_KEY", "secret")
    tried.tiny.write_job(
        command=COMMAND, smoke="-s", env={"WANDB_MODE": "online", "X": "1"}, secrets=["A_KEY"]
    )
    smoke(tried.project, cells=["a"])
    environ = tried.starts[0]["environ"]
    assert environ["CUDA_VISIBLE_DEVICES"] == ""
    assert environ["WANDB_MODE"] == "disabled"
    assert (environ["X"], environ["A_KEY"], environ["BOXCAR_CELL"]) == ("1", "secret", "a")
    assert "MY_DATA" not in environ
    # Ranks would look for this machine by a host name that may have no address.
    assert environ.get("GLOO_SOCKET_IFNAME") == ("lo" if sys.platform == "linux" else None)


@pytest.mark.parametrize(
    ("tracker", "env", "is_bad"),
    [
        ("wandb", {}, True),
        ("wandb", {"WANDB_MODE": "offline"}, False),
        ("comet_ml", {}, True),
        ("swanlab", {}, True),
        ("mlflow", {}, False),  # a database of its own, and no login
    ],
)
def test_a_tracker_that_asks_for_a_login_on_a_box_fails_here_where_it_is_off(
    tried: Tried, tracker: str, env: dict[str, str], is_bad: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tried.root / f"{tracker}.py").touch()
    (tried.root / "train.py").write_text(f"import {tracker}\n{TRAIN}")
    tried.tiny.write_job(command=COMMAND, smoke="-s", resume=None, env=env)
    assert smoke(tried.project, cells=["a"]) == is_bad
    said = " ".join(capsys.readouterr().out.split())
    assert ("job.yaml has neither" in said) == is_bad
    assert tried.started == ([] if is_bad else ["a"])


def test_what_is_ignored_is_missed_here(tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    assert smoke(tried.project, cells=["a"]) == 0
    (tried.root / ".boxcarignore").write_text("helper.py\n")
    assert smoke(tried.project, cells=["a"]) == 1
    assert "No module named 'helper'" in capsys.readouterr().err


def test_a_config_that_would_not_travel_is_refused_before_anything_runs(tried: Tried) -> None:
    (tried.root / ".boxcarignore").write_text("/configs/b.json\n")
    with pytest.raises(InputError, match=r"configs/b\.json: the config of b would not be sent"):
        smoke(tried.project)
    assert tried.starts == []
    assert "b" in missing(tried.project)


def test_the_working_tree_is_left_as_it_is(tried: Tried) -> None:
    before = sorted(path for path in tried.root.rglob("*"))
    smoke(tried.project)
    after = sorted(path for path in tried.root.rglob("*"))
    assert [path for path in after if ".boxcar" not in path.parts] == before
    assert tried.starts[0]["cwd"] == str(tried.root / ".boxcar" / "smoke" / "tiny" / "code")


def test_a_failing_cell_is_told_with_its_end_and_the_others_still_run(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    tried.config("b", exit_code=3)
    assert smoke(tried.project, as_json=True) == 1
    assert tried.started == ["a", "b", "c"]
    shown = capsys.readouterr()
    cells = {cell["cell"]: cell for cell in json.loads(shown.out)["cells"]}
    assert {name: cell["state"] for name, cell in cells.items()} == {
        "a": "passed",
        "b": "failed",
        "c": "passed",
    }
    assert cells["b"]["because"] == "exit code 3"
    assert "--- b: exit code 3. Last lines of " in shown.err
    assert "KeyError: 'no such key'" in shown.err
    assert missing(tried.project) == ["b"]


def test_the_command_by_hand_does_the_same(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    tried.config("b", exit_code=3)
    smoke(tried.project, cells=["b"], as_json=True)
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    by_hand = subprocess.run(
        ["bash", "-c", cell["by_hand"]], capture_output=True, text=True, check=False
    )
    assert by_hand.returncode == 3, by_hand.stderr
    first, second = tried.starts
    assert first["arguments"] == second["arguments"]
    assert second["environ"]["WANDB_MODE"] == "disabled"
    assert shlex.split(cell["by_hand"])[0] == "cd"


def test_a_script_that_torch_aborts_after_its_end_is_tried_once_more(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    tried.config("a", aborts=1)
    assert smoke(tried.project, cells=["a"]) == 0
    assert len(tried.starts) == 2
    assert "torch crashed at exit on the first try" in capsys.readouterr().out


def test_a_script_that_is_aborted_twice_has_failed(tried: Tried) -> None:
    tried.config("a", aborts=2)
    assert smoke(tried.project, cells=["a"]) == 1
    assert len(tried.starts) == 2


def test_a_cell_that_hangs_is_ended_and_said(
    tried: Tried, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "TIMEOUT_S", 0.5)
    tried.config("a", hangs=True)
    assert smoke(tried.project, cells=["a"]) == 1
    shown = capsys.readouterr()
    assert "timed out" in shown.out
    assert "it was still running after" in shown.err
    held = lock.try_hold(tried.root / ".boxcar" / "smoke" / "tiny" / ".lock")
    assert held is not None, "a process of the try still lives"
    os.close(held)


def test_an_interrupted_smoke_ends_its_try(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    tried.config("a", hangs=True)
    waited: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen.wait

    def interrupted(self: Any, timeout: float | None = None) -> int:
        if timeout == memory.LOOK_EVERY_S:
            waited.append(self)
            raise KeyboardInterrupt
        return real(self, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        smoke(tried.project)
    assert waited[0].returncode in (-signal.SIGTERM, -signal.SIGKILL)
    assert len(missing(tried.project)) == 3


# --- what is remembered


def test_what_passed_is_not_run_again_and_only_what_changed_is(tried: Tried) -> None:
    smoke(tried.project)
    assert smoke(tried.project) == 0
    assert tried.started == ["a", "b", "c"]
    tried.config("b", x=1)
    assert missing(tried.project) == ["b"]
    smoke(tried.project)
    assert tried.started == ["a", "b", "c", "b"]


def test_a_cell_that_is_added_costs_no_new_try_of_the_others(tried: Tried) -> None:
    smoke(tried.project)
    tried.config("d", x=4)
    tried.tiny.append("q1", "configs/d.json recon 5")
    assert missing(tried.project) == ["d"]


def test_any_other_change_asks_for_a_new_try_of_all(tried: Tried) -> None:
    smoke(tried.project)
    job: dict[str, Any] = {"command": COMMAND, "smoke": "--limit 2 '--note={task} x'"}
    changes: list[dict[str, Any]] = [
        {"smoke": "--limit 3"},
        {"command": f"{COMMAND} --more"},
        {"env": {"A": "1"}},
        {"launcher": "torchrun"},
        {"nproc_per_node": 2},
        {"artifacts": ["metrics.json"]},
    ]
    for change in changes:
        tried.tiny.write_job(**(job | {"resume": None} | change))
        assert missing(tried.project) == ["a", "b", "c"], change
    tried.tiny.write_job(**(job | {"resume": None, "linger_s": 5}))
    assert missing(tried.project) == []
    (tried.root / "helper.py").chmod(0o755)
    assert missing(tried.project) == ["a", "b", "c"]
    (tried.root / "helper.py").chmod(0o644)
    assert missing(tried.project) == []
    (tried.root / "helper.py").write_text("x = 1\n")
    assert missing(tried.project) == ["a", "b", "c"]


def test_a_config_that_names_another_cells_config_is_tried_again_with_it(tried: Tried) -> None:
    tried.tiny.write_config("base_of_all", notes=str(tried.notes))
    tried.tiny.append("q2", "configs/base_of_all.json seg")
    tried.config("c", base="base_of_all")
    smoke(tried.project)
    tried.tiny.write_config("base_of_all", notes=str(tried.notes), x=1)
    assert missing(tried.project) == ["c", "base_of_all"]


def test_a_pass_is_not_lent_to_a_cell_with_other_words(tried: Tried) -> None:
    (tried.root / "configs" / "b.json").write_bytes(
        (tried.root / "configs" / "a.json").read_bytes()
    )
    smoke(tried.project)
    assert tried.started == ["a", "b", "c"]
    assert missing(tried.project) == []


def test_a_pass_is_never_lent_to_a_cell_whose_words_differ(tried: Tried) -> None:
    (tried.root / "train.py").write_text("import sys\nprint(sys.argv)\nsys.exit('b' in sys.argv)\n")
    (tried.root / "configs" / "b.json").write_bytes(
        (tried.root / "configs" / "a.json").read_bytes()
    )
    tried.tiny.write_job(command="train.py --arch {name}", smoke="-s", resume=None)
    assert smoke(tried.project) == 1
    assert missing(tried.project) == ["b"]


def test_cells_that_run_the_very_same_words_run_once(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    config = (tried.root / "configs" / "a.json").read_bytes()
    (tried.root / "configs" / "b.json").write_bytes(config)
    (tried.root / "train.py").write_text("import sys\nprint(sys.argv[1])\n")
    tried.tiny.write_job(command="train.py {out} {task}", smoke="-s", resume=None)
    assert smoke(tried.project, cells=["a", "b"]) == 0
    assert "the same as a" in capsys.readouterr().out
    assert missing(tried.project) == ["c"]


def test_a_pass_that_is_damaged_is_none(tried: Tried) -> None:
    smoke(tried.project, cells=["a"])
    (passed,) = (tried.root / ".boxcar" / "smoke" / "passes").iterdir()
    passed.write_bytes(passed.read_bytes()[:-20])
    assert missing(tried.project) == ["a", "b", "c"]


def test_what_a_cell_leaves_is_measured_for_the_budget(tried: Tried) -> None:
    assert measured(tried.project) is None
    smoke(tried.project, cells=["a"])
    found = measured(tried.project)
    assert found and (found.size_bytes, found.files) == (18, 2)
    assert found.code_bytes > 0
    assert not (tried.root / ".boxcar" / "smoke" / "tiny" / "cells" / "a" / "out").exists()


def test_an_artifact_that_is_not_written_is_said_and_passes(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script that saves at its end alone, and only logs before."""
    tried.config("a", writes=["train.log", "events.txt"])
    assert smoke(tried.project, cells=["a"]) == 0
    assert "not written in this short run: model.json, metrics.json (a)" in capsys.readouterr().err


def test_an_artifact_that_one_cell_wrote_is_said_of_the_others_and_passes(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    tried.config("a", writes=["metrics.json"])
    assert smoke(tried.project) == 0
    assert "not written in this short run: model.json (a)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("artifacts", "writes", "lost"),
    [
        (["*.pt"], "000-net/0000010.pt", "no cell wrote *.pt"),
        (["best.pth"], "model.safetensors", "no cell wrote best.pth"),
        (["last.json", "best.json"], "last.json", "no cell wrote best.json"),
        (["best.json"], "log.csv", ""),
        (["best.pth"], "saved/last.pth", ""),  # the job's resume
    ],
)
def test_an_artifact_that_no_cell_wrote_fails_where_others_were_saved(
    tried: Tried,
    capsys: pytest.CaptureFixture[str],
    artifacts: list[str],
    writes: str,
    lost: str,
) -> None:
    (tried.root / "train.py").write_text(
        "import os, sys\n"
        f"path = os.path.join(sys.argv[3], {writes!r})\n"
        "os.makedirs(os.path.dirname(path), exist_ok=True)\n"
        "open(path, 'w').write('[1]')\n"
    )
    loaded = [{"path": path, "load": "bytes"} for path in artifacts]
    job = {"command": COMMAND, "smoke": "-s", "artifacts": loaded, "resume": "saved/last.pth"}
    tried.tiny.write_job(**job)
    assert smoke(tried.project) == bool(lost)
    assert (missing(tried.project) == ["a", "b", "c"]) == bool(lost)
    said = capsys.readouterr()
    assert lost in said.err and ("no cell wrote" in said.err) == bool(lost)
    assert (f"but wrote {writes}" in said.out) == bool(lost) or not lost


@pytest.mark.parametrize(
    ("artifact", "is_good"),
    [
        ("m.json", False),
        ({"path": "m.json", "load": "bytes"}, True),
        ({"path": "*.json", "load": "bytes"}, True),
        ("*.json", False),
        ({"path": "good/", "keys": ["step"]}, True),
        ({"path": "good/", "keys": ["model"]}, False),
        ("*/", True),
    ],
)
def test_what_the_short_run_wrote_is_loaded_as_its_box_will_load_it(
    tried: Tried, capsys: pytest.CaptureFixture[str], artifact: Any, is_good: bool
) -> None:
    (tried.root / "train.py").write_text(
        "import os, sys\n"
        "os.makedirs(sys.argv[3] + '/good')\n"
        "open(sys.argv[3] + '/good/n.json', 'w').write('{\"step\": 1}')\n"
        "open(sys.argv[3] + '/m.json', 'w').write('{\"loss\": ')\n"
    )
    tried.tiny.write_job(command=COMMAND, smoke="-s", artifacts=[artifact], resume=None)
    assert smoke(tried.project, cells=["a"]) == (not is_good)
    assert ("BAD-ART" in capsys.readouterr().out) != is_good


METRICS = {
    "loss": {"log": r"val_los: (\S+)"},
    "line": {"log": "a (l)ine of the log"},
    "top1": {"csv": "s.csv", "column": "top1"},
    "rows": {"json": "metrics.json", "key": "rows"},
}


def test_a_number_that_is_not_found_is_said_also_of_a_pass_that_is_remembered(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    job = {"command": COMMAND, "smoke": "--limit 2", "resume": None}
    assert smoke(tried.project, cells=["a", "b"]) == 0
    assert "matches" not in capsys.readouterr().err
    tried.tiny.write_job(**job, metrics=METRICS)
    assert missing(tried.project) == ["a", "b", "c"]
    for _ in range(2):
        assert smoke(tried.project, cells=["a", "b"]) == 0, "two batches may not be enough for it"
        said = capsys.readouterr().err
        assert r"loss: nothing in the log matches val_los: (\S+) (a, b)" in said
        assert "top1: s.csv is not there (a, b)" in said
        assert "rows: metrics.json: no key 'rows' (a, b)" in said
        assert "line: the log: 'l' is not a number (a, b)" in said


def test_what_each_expression_took_is_said_with_its_line_also_of_a_remembered_pass(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    job = {"command": COMMAND, "smoke": "--limit 2", "resume": None}
    metrics = {"loss": {"log": r"loss ([0-9.]+)"}, "dice": {"json": "metrics.json", "key": "dice"}}
    for name in "ab":
        says = "step 1: loss 9.5e-05, lr 0.1"
        tried.config(name, says=says, writes=["metrics.json"], holds='{"dice": 0.5}')
    tried.tiny.write_job(**job, metrics=metrics, artifacts=["metrics.json"])
    for _ in range(2):
        assert smoke(tried.project, cells=["a", "b"]) == 0
        said = capsys.readouterr().err
        line = "from this line of the log: step 1: loss 9.5e-05, lr 0.1"
        assert f"loss = 9.5e-05, {line} (a; 1 more cell has its own)" in said
        assert "dice = 0.5, from dice in metrics.json (a; 1 more cell has its own)" in said


# --- what is refused


def test_a_job_without_smoke_words_is_refused_with_an_example(tried: Tried) -> None:
    tried.tiny.write_job(command=COMMAND)
    with pytest.raises(InputError, match=r"smoke: --limit-batches 2 --epochs 1"):
        smoke(tried.project)
    assert missing(tried.project) == ["a", "b", "c"]


def test_an_unknown_cell_is_refused_with_the_nearest(tried: Tried) -> None:
    with pytest.raises(InputError, match="has no cell 'aa'"):
        smoke(tried.project, cells=["aa", "b"])
    assert tried.starts == []


def test_a_second_smoke_of_the_run_is_refused(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tried.root / ".boxcar" / "smoke" / "tiny"
    folder.mkdir(parents=True)
    monkeypatch.setattr(lock, "hold", lock.try_hold)  # without its patience
    with stage.alone_in(folder):
        with pytest.raises(TemporaryError, match=rf"at work there .process {os.getpid()}."):
            smoke(tried.project)
        stage._verbs_pid(folder).unlink()
        with pytest.raises(TemporaryError, match=r"To see which: lsof .*/\.smoke.?\. Run"):
            smoke(tried.project)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_smoke_that_is_told_to_end_ends_its_try(tried: Tried, number: int) -> None:
    with tried.hanging() as verb:
        # A shell and the kernel send it, each for itself.
        for _ in range(2):
            verb.send_signal(number)
        assert verb.wait(LIMIT_S) == 128 + number
    assert not lock.is_held(tried.root / ".boxcar/smoke/tiny/.lock"), "the try goes on"


def test_a_try_whose_smoke_was_killed_is_named_and_ended_by_what_is_said(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "hold", lock.try_hold)  # without its patience
    with tried.hanging() as verb:
        verb.kill()
    tried.config("a")
    with pytest.raises(TemporaryError, match="a smoke or rehearse was killed") as refused:
        smoke(tried.project, cells=["a"])
    subprocess.run(["bash", "-c", str(refused.value).rpartition(": ")[2]], check=True)
    held = tried.root / ".boxcar/smoke/tiny/.lock"
    until(lambda: not lock.is_held(held), "the try has ended")
    assert smoke(tried.project, cells=["a"]) == 0


def test_torchrun_starts_the_ranks_of_the_cell_and_at_most_two(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    tried.tiny.write_job(
        command=COMMAND,
        smoke="-s",
        launcher="torchrun",
        cells={"a": {"nproc_per_node": 4}},
        env={"OMP_NUM_THREADS": "1"},
    )
    assert smoke(tried.project, cells=["a"]) == 0
    assert sorted(start["environ"]["RANK"] for start in tried.starts) == ["0", "1"]
    assert "cells with more ranks are tested with 2" in capsys.readouterr().err


def test_the_reason_is_shown_and_not_what_torchrun_says_of_it(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    at = "torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1)"
    log.write_text(f"start\nKeyError: 'x'\nE1121 15:20:12 26272 {at}\n" + "Root Cause\n" * 40)
    assert stage.tail(log) == ["start", "KeyError: 'x'"]
    log.write_text("".join(f"{number}\n" for number in range(100)))
    assert stage.tail(log) == [str(number) for number in range(80, 100)]


# --- what a try leaves where

# As pytorch/examples imagenet: into the working folder, and from there.
IMAGENET = """
import os, sys
from pathlib import Path

if Path("checkpoint.pth.tar").exists():
    print("=> loaded checkpoint", Path("checkpoint.pth.tar").read_text())
Path("checkpoint.pth.tar").write_text(sys.argv[1])
Path("model_best.pth.tar").write_text(sys.argv[1])
"""


@pytest.fixture
def imagenet(tmp_path: Path) -> Tried:
    made = Tried(
        tmp_path / "p",
        command="train.py {cfg}",
        artifacts=["model_best.pth.tar"],
        resume="checkpoint.pth.tar",
    )
    (made.root / "train.py").write_text(IMAGENET)
    return made


def test_a_declared_file_beside_the_code_fails_with_its_path_and_the_way_out(
    imagenet: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    assert smoke(imagenet.project, cells=["a", "b"]) == 1
    shown = capsys.readouterr()
    told = "your script wrote ./checkpoint.pth.tar, ./model_best.pth.tar beside its code"
    assert told in shown.out
    assert "set workdir: out in job.yaml" in shown.out
    assert len(missing(imagenet.project)) == 3


def test_no_cell_sees_what_another_one_wrote_beside_its_code(imagenet: Tried) -> None:
    smoke(imagenet.project, cells=["a", "b"])
    cells = imagenet.root / ".boxcar" / "smoke" / "tiny" / "cells"
    assert [(cells / name / f"{name}.log").read_text() for name in "ab"] == ["", ""]
    assert not (imagenet.root / ".boxcar/smoke/tiny/code/checkpoint.pth.tar").exists()


def test_what_else_a_cell_writes_there_is_in_the_table_also_when_it_is_remembered(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert smoke(tried.project, cells=["a"]) == 0
        assert "wrote litter beside its code" in capsys.readouterr().out
    assert tried.started == ["a"]


def test_a_cell_that_edits_its_own_code_fails_as_on_a_box(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    (tried.root / "train.py").write_text("open('helper.py', 'a').write('x')\nprint('done')\n")
    assert smoke(tried.project, cells=["a", "b"]) == 1
    assert capsys.readouterr().out.count("it changed helper.py of its own code") == 2


def test_what_ends_with_0_and_leaves_nothing_is_no_pass(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    (tried.root / "train.py").write_text("if __name__ == 'main':\n    print('never')\n")
    assert smoke(tried.project, cells=["a"]) == 1
    assert "left no file in {out} and no line in its log" in capsys.readouterr().out
    (tried.root / "train.py").write_text("print('a line')\n")
    assert smoke(tried.project, cells=["a"]) == 0


# --- what is shown of it


def test_an_artifact_that_no_cell_wrote_is_in_the_table(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "abc":
        tried.config(name, writes=["metrics.json"])
    assert smoke(tried.project) == 1
    assert capsys.readouterr().out.count("did not write model.json; but wrote metrics.json") == 3


def test_a_name_that_boxcar_uses_itself_is_said_before_the_first_cell(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "abc":
        tried.config(name, writes=["manifest.json", f"{name}.log", "model.json"])
    job = {"command": COMMAND, "smoke": "--limit 2", "resume": None}
    tried.tiny.write_job(**job, artifacts=["*.json", "*.log"])
    for _ in ("tried", "passed before"):
        assert smoke(tried.project) == 0
        told = capsys.readouterr()
        assert "a.log, manifest.json: reserved names of Boxcar" in told.out
        assert "Rename them" in told.err and "not written" not in told.err


def test_one_failure_of_many_cells_is_shown_once(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "abc":
        tried.config(name, exit_code=3)
    assert smoke(tried.project) == 1
    shown = capsys.readouterr()
    assert shown.err.count("KeyError: 'no such key'") == 1
    assert "--- a, b, c: exit code 3. Last lines of " in shown.err
    [typed] = re.findall("to reproduce: (.+)", shown.err)
    again = subprocess.run(shlex.split(typed), capture_output=True, text=True, check=False)
    assert again.returncode == 3 and "KeyError: 'no such key'" in again.stderr
    assert shown.out.count("exit code 3") == 3


def test_a_file_that_does_not_travel_is_named_with_the_rule_that_leaves_it_out(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    (tried.root / "data").mkdir()
    (tried.root / "data/train.bin").touch()
    (tried.root / ".boxcarignore").write_text("*.bin\n")
    (tried.root / "train.py").write_text("open('data/train.bin')\n")
    assert smoke(tried.project, as_json=True) == 1
    shown = capsys.readouterr()
    hint = "data/train.bin is in your code folder but is not sent: .boxcarignore:1 (*.bin)"
    assert shown.err.count(hint) == 1
    assert all(hint in cell["hints"][0] for cell in json.loads(shown.out)["cells"])


@pytest.fixture
def grid(tried: Tried) -> Tried:
    for number in range(13):
        tried.config(f"n{number}")
        tried.tiny.append("q1", f"configs/n{number}.json recon 5")
    return tried


def test_of_a_large_grid_one_of_each_kind_is_tried_and_the_rest_is_counted(
    grid: Tried, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "_kind", lambda project, cell: cell.task)
    assert smoke(grid.project) == 0
    assert grid.started == ["a", "c"]
    shown = capsys.readouterr()
    assert "14 more  not tested" in " ".join(shown.out.replace("\n", " ").split("   "))
    assert missing(grid.project) == []
    assert len(passes.untried(grid.project)) == 14


def test_all_tries_each_cell_of_a_large_grid(grid: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "_kind", lambda project, cell: "one")
    assert smoke(grid.project, is_all=True) == 0
    assert len(grid.started) == 16
    assert passes.untried(grid.project) == []


# --- workdir, replace, skip


def test_under_workdir_out_a_try_starts_in_out_and_leaves_its_files_there(
    imagenet: Tried,
) -> None:
    imagenet.tiny.write_job(
        command="train.py {cfg}",
        artifacts=[{"path": "model_best.pth.tar", "load": "bytes"}],
        resume="checkpoint.pth.tar",
        workdir="out",
        smoke="-s",
    )
    assert smoke(imagenet.project) == 0
    assert missing(imagenet.project) == []


def test_a_relative_path_of_the_code_is_spelled_for_a_try_that_starts_in_out(
    imagenet: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    (imagenet.root / "tiny.txt").touch()
    (imagenet.root / "train.py").write_text("open('tiny.txt')\n")
    imagenet.tiny.write_job(command="train.py", workdir="out", smoke="-s", resume=None)
    assert smoke(imagenet.project, cells=["a"]) == 1
    assert "write {code}/tiny.txt" in capsys.readouterr().err


def test_positions_are_replaced_for_a_smoke(tried: Tried) -> None:
    short = {"replace": {"{epochs}": 1, "{task}": "tiny"}, "add": "--limit 2"}
    tried.tiny.write_job(command=COMMAND, smoke=short, resume=None)
    assert smoke(tried.project, cells=["a"]) == 0
    arguments = tried.starts[0]["arguments"]
    assert [*arguments[1:2], *arguments[3:]] == [
        "tiny", "--epochs", "1", "--name", "a", "--limit", "2"
    ]  # fmt: skip


def test_a_cell_that_is_skipped_is_shown_with_its_reason_and_asked_for_nowhere(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    short = {"add": "-s", "skip": {"b": "needs two GPUs", "z*": "none yet"}}
    tried.tiny.write_job(command=COMMAND, smoke=short, resume=None)
    assert missing(tried.project) == ["a", "c"]
    assert smoke(tried.project) == 0
    assert tried.started == ["a", "c"]
    shown = capsys.readouterr().out
    assert "skipped" in shown
    assert "needs two GPUs" in shown
    assert passes.untried(tried.project) == []
    assert smoke(tried.project, is_all=True) == 0
    assert tried.started == ["a", "c"]
    assert smoke(tried.project, cells=["b"]) == 0, "who names it means it"
    assert tried.started == ["a", "c", "b"]


def test_after_a_teardown_no_launch_is_proposed(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    now = timestamp.utc_now()
    teardown = Teardown("tiny", "ab" * 32, "remove", now, "typed", finished_at=now)
    results = tried.project.results
    results.root.mkdir(parents=True)
    atomic.write_whole(results.teardown, codec.to_document(teardown))
    for name in "abc":
        tried.config(name)
    smoke(tried.project)
    said = capsys.readouterr().err
    assert "was torn down" in said and "another name" in said and "Next" not in said
