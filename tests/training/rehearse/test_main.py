"""The command line, as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LIMIT_S, until

from boxcar.laptop.release import archives
from boxcar.shared.disk import lock
from boxcar.training.rehearse.__main__ import _document, report_lines
from boxcar.training.rehearse.compare import compare
from boxcar.training.rehearse.curve import Curve, Order, Parting
from boxcar.training.rehearse.outside_writes import Outside
from boxcar.training.rehearse.rehearsal import Report
from boxcar.training.rehearse.verdict import Killed, Suspect

ROOT = Path(__file__).resolve().parents[3]
PLANTED = str(Path(__file__).with_name("planted.py"))
COUNTS = """
import json, os, pathlib, time
out = pathlib.Path(os.environ["BOXCAR_OUT"])
latest = out / "latest.json"
step = json.loads(latest.read_text())["step"] if latest.exists() else 0
while step < 20:
    step += 1
    latest.with_name("new").write_text(json.dumps({"step": step}))
    latest.with_name("new").replace(latest)
    with (out / "progress.jsonl").open("a") as file:
        print(json.dumps({"step": step}), file=file)
    time.sleep(0.005)
"""
MODULE = [sys.executable, "-m", "boxcar.training.rehearse"]


def typed(folder: Path, *words: str, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MODULE, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_runs_from_the_zip_and_says_all_in_one_document(tmp_path: Path) -> None:
    archive = tmp_path / "training.zip"
    archive.write_bytes(archives.build_training())
    (tmp_path / "train.py").write_text(COUNTS)
    flags = ["--resume", "latest.json", "--seed", "3", "--json"]
    done = typed(tmp_path, *flags, "--", "train.py", path=archive)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["word"], report["seed"], report["is_good"]) == ("bit-equal", 3, True)
    assert json.loads((tmp_path / ".boxcar/rehearse/report.json").read_text()) == report
    assert "repeat by --seed 3" in done.stderr and "SIGKILL after" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "expected a command after --"),
        (["--kills", "0", "--", "x"], "expected a whole number from 1 to 100"),
        (["--tolerance", "2", "--", "x"], "expected a number from 0 to below 1"),
        (["--cwd", "nowhere", "--", "x"], "there is no such folder"),
        (["--", "no-such-program"], "no-such-program: cannot be started"),
        (["--work", ".", "--", "x"], "that no rehearsal made"),
    ],
)
def test_a_wrong_line_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "precious").touch()
    done = typed(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name != ".boxcar"] == ["precious"]


def test_a_script_that_fails_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise KeyError('no such key')")
    done = typed(tmp_path, "--", "train.py")
    assert done.returncode == 1
    assert "failed: a run did not end well" in done.stdout
    assert "the uninterrupted run ended with exit code 1" in done.stdout
    assert "KeyError: 'no such key'" in done.stdout


def test_one_that_is_told_to_end_leaves_nothing_of_the_cell(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('began', 'w').close()\nimport time; time.sleep(3600)")
    words = [*MODULE, "--", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, cwd=tmp_path, env=environment) as rehearsal:
        until((tmp_path / "began").exists, "the script runs")
        rehearsal.terminate()
        assert rehearsal.wait(LIMIT_S) == 143
    [log] = (tmp_path / ".boxcar/rehearse").rglob("*.log")
    assert not lock.is_held(log), "a process of the cell lives"


def test_every_finding_has_its_place_in_the_document() -> None:
    report = Report(
        "differs",
        7,
        suspects=(Suspect("optimizer", "its step is behind"),),
        kills=(Killed(3, True, 2),),
        files={"latest.pth": compare({"model": [1.0, float("nan")]}, {"model": [2.0, 1.0]}, 0.0)},
        curve=Curve(9, Parting(3, 1, "loss", 1.0, None), surplus=(11,), missing=(2,)),
        order=Order(9, "rank-0 drew other samples", 1),
        outside=(Outside("/a", "new"),),
    )
    document = json.loads(_document(report))
    assert document["files"]["latest.pth"]["differences"][0]["kind"] == "model"
    assert document["curve"]["surplus"] == [11]
    assert "steps that only the killed run reported: 11" in "".join(document["lines"])


def test_a_flat_state_dict_is_told_by_its_modules_and_not_by_each_weight() -> None:
    whole = {f"block{n}.{name}": 1.0 for n in range(9) for name in ("weight", "bias")}
    compared = compare(whole, dict.fromkeys(whole, 2.0), 0.0)
    report = Report("differs", 7, kills=(Killed(3, True, 2),), files={"x.pth": compared})
    said = [line for line in report_lines(report) if line.startswith("    ")]
    assert said[0] == "    block0: 2, such as block0.weight: uninterrupted 1, killed 2"
    assert said[6] == "    and in 3 more parts" and len(said) == 7


@pytest.mark.faults
def test_a_torchrun_of_two_ranks_is_killed_with_its_ranks(tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    words = ["--seed", "3", "--artifact", "best.pth", "--", *torchrun, "--nproc-per-node", "2"]
    done = typed(tmp_path, *words, PLANTED, "--pause-s", "0.02")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "data order: the same in all 48 batches" in done.stdout


@pytest.mark.faults
def test_a_torch_training_that_forgets_its_optimizer_is_told_so(tmp_path: Path) -> None:
    words = ["--artifact", "best.pth", "--seed", "3", "--json", "--"]
    planted = [PLANTED, "--without", "optimizer", "--pause-s", "0.01"]
    done = typed(tmp_path, *words, *planted)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert [suspect["state"] for suspect in report["suspects"]] == ["optimizer"]
    assert report["word"] == "differs" and report["order"]["problem"] == ""
    assert report["curve"]["first"]["step"] > 12
