from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.habits import job_text
from boxcar.laptop.project.project import open_project
from boxcar.laptop.verbs.init import init
from boxcar.shared.errors import InputError

SCRIPT = """\
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--out", default="out")
parser.add_argument("--epochs", type=int, default=5)
args = parser.parse_args()
for epoch in range(args.epochs):
    loss.backward()
torch.save({}, args.out + "/best.pt")
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = tmp_path / "My Project 模型"
    made.mkdir()
    (made / "train.py").write_text(SCRIPT)
    return made


def files(root: Path) -> dict[str, str]:
    paths = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


def answers(monkeypatch: pytest.MonkeyPatch, *typed: str) -> None:
    left = list(typed)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("boxcar.laptop.common.show.ask", lambda prompt: left.pop(0))


def test_what_it_writes_is_a_project_that_plan_takes(root: Path) -> None:
    assert init(root, yes=True) == 0
    project = open_project(root / "job.yaml")
    assert project.plan.run == "my-project"
    assert [cell.name for cell in project.plan.cells] == ["train"]
    assert set(files(root)) == {"train.py", "job.yaml", job_text.QUEUE, ".boxcarignore"}


def test_where_nobody_can_be_asked_it_shows_the_job_and_writes_nothing(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(root) == 0
    said = capsys.readouterr()
    assert "command: train.py --out {out} --epochs {epochs}" in said.out
    assert "init --yes" in said.err
    assert set(files(root)) == {"train.py"}


@pytest.mark.parametrize(("typed", "is_written"), [("", True), ("y", True), ("n", False)])
def test_a_person_is_asked_before_anything_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch, typed: str, is_written: bool
) -> None:
    answers(monkeypatch, typed)
    assert init(root) == (0 if is_written else 1)
    assert (root / "job.yaml").exists() == is_written == (root / job_text.QUEUE).exists()


def test_of_several_scripts_a_person_says_which(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "finetune.py").write_text(SCRIPT)
    answers(monkeypatch, "2", "y")
    assert init(root) == 0
    assert open_project(root / "job.yaml").plan.command[0] == "finetune.py"
    (root / "job.yaml").unlink()
    answers(monkeypatch, "3")
    with pytest.raises(InputError, match="a number from 1 to 2, found '3'"):
        init(root)


def test_nothing_that_is_there_is_overwritten(root: Path) -> None:
    (root / "queues").mkdir()
    (root / job_text.QUEUE).write_text("- mine 1\n")
    (root / ".boxcarignore").write_text("mine/\n")
    assert init(root, yes=True) == 0
    before = files(root)
    assert (before[job_text.QUEUE], before[".boxcarignore"]) == ("- mine 1\n", "mine/\n")
    with pytest.raises(InputError, match="nothing is overwritten"):
        init(root, yes=True)
    assert files(root) == before


def test_a_key_that_plan_refuses_is_commented_with_the_reason(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "train.py").write_text(SCRIPT.replace("/best.pt", "/receipt.json"))
    assert init(root, yes=True) == 1
    text = (root / "job.yaml").read_text()
    assert "# boxcar plan refused it:" in text and "# artifacts:" in text
    assert "is written by Boxcar itself" in capsys.readouterr().err


@pytest.mark.parametrize("named", ["../train.py", "gone.py", "notes.txt"])
def test_a_script_that_is_none_is_refused_and_nothing_is_written(root: Path, named: str) -> None:
    (root / "notes.txt").write_text("print(")
    with pytest.raises(InputError):
        init(root, named=named, yes=True)
    assert "job.yaml" not in files(root)


def test_in_an_empty_folder_it_says_how_to_name_a_script(root: Path) -> None:
    (root / "train.py").unlink()
    with pytest.raises(InputError, match="no script here looks like one that trains"):
        init(root, yes=True)


def test_a_person_is_asked_for_what_no_source_says(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = 'parser.add_argument("--dataset", required=True)\nargs ='
    (root / "train.py").write_text(SCRIPT.replace("args =", needed, 1))
    answers(monkeypatch, "cifar 10", "y")
    assert init(root) == 0
    assert open_project(root / "job.yaml").plan.command[-2:] == ("--dataset", "cifar 10")
