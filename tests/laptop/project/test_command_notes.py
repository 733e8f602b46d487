"""What is odd about a command: said by `plan` before money is spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.project.job import read_job
from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.project.resolve import Resolved, resolve


def resolved(root: Path, command: str, more: str = "", script: str = "") -> Resolved:
    (root / "pkg").mkdir()
    (root / "a.json").touch()
    (root / "train.py").write_text(script)
    (root / "pkg" / "fit.py").touch()
    (root / "q1.txt").write_text("a.json t\n")
    (root / "job.yaml").write_text(
        f"name: run-1\ncommand: {command}\nqueues: {{q1.txt: box-a}}\nartifacts: [best.pth]\n{more}"
    )
    return resolve(root, read_job(root / "job.yaml"), load_profile("local", root))


def notes(root: Path, command: str, more: str = "", script: str = "") -> list[str]:
    found = resolved(root, command, more, script)
    assert found.faults == ()
    return [note.replace(f"{root}/", "") for note in found.notes]


def test_a_variable_before_the_script_is_a_fault_that_says_where_it_belongs(tmp_path: Path) -> None:
    [fault] = resolved(tmp_path, "CUDA_VISIBLE_DEVICES=0 train.py {cfg} {out}").faults
    assert "job.yaml:2: command: begins with 'CUDA_VISIBLE_DEVICES=0'" in fault.text
    assert "in shell syntax. Write env: {CUDA_VISIBLE_DEVICES: '0'}," in fault.text


@pytest.mark.parametrize("tail", ["| tee log", "> log 2>&1", "2>&1", "&& echo done", "; date"])
def test_what_only_a_shell_understands_is_named(tmp_path: Path, tail: str) -> None:
    [note] = notes(tmp_path, f'"train.py {{cfg}} {{out}} {tail}"')
    assert f"the command is not run by a shell: {tail.split(maxsplit=1)[0]!r}" in note
    assert "kept in its log" in note


def test_a_variable_that_nobody_fills_is_named(tmp_path: Path) -> None:
    [note] = notes(tmp_path, '"train.py {cfg} --data $DATA/x --out {out}"')
    assert "'$DATA/x' is passed to the script as it is. Write" in note


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate", "deepspeed", "python"])
@pytest.mark.parametrize("command", ["-m pkg.fit {cfg} {out}", "-m train {cfg} {out}"])
def test_a_module_of_the_code_is_right(tmp_path: Path, command: str, launcher: str) -> None:
    assert notes(tmp_path, command, f"launcher: {launcher}\n") == []


def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    [note] = notes(tmp_path, "-m pkg.trian {cfg} {out}")
    assert "-m pkg.trian: " in note and "has no pkg/trian.py. Name the script itself," in note


def test_a_command_that_says_no_place_is_named(tmp_path: Path) -> None:
    [note] = notes(tmp_path, "train.py {cfg}")
    assert "job.yaml:2: command: uses neither {out} nor {name}," in note
    assert "--out {out}" in note


def test_a_place_in_braces_of_its_own_is_text(tmp_path: Path) -> None:
    [note] = notes(tmp_path, "train.py {cfg}", "env: {RESULTS: '{{out}}'}\n")
    assert "neither {out} nor {name}," in note


@pytest.mark.parametrize(
    ("command", "more", "script"),
    [
        ("train.py {cfg} {out}", "", ""),
        ("train.py {cfg} --out={out}/x", "", ""),
        ("train.py {cfg} --name {name}", "", ""),
        ("train.py {cfg}", "env: {RESULTS: '{out}'}\n", ""),
        ("train.py {cfg}", """env: {STYLE: '{"a": {HOME}', RESULTS: '{out}'}\n""", ""),
        ("train.py {cfg}", "workdir: out\n", ""),
        ("train.py {cfg}", "", "out = os.environ['BOXCAR_OUT']"),
        ("train.py {cfg}", "", "from boxcar.training import Checkpointer"),
    ],
)
def test_a_place_that_is_said_in_any_way_is_enough(
    tmp_path: Path, command: str, more: str, script: str
) -> None:
    assert notes(tmp_path, command, more, script) == []


@pytest.mark.parametrize("command", ["bash train.sh {cfg} {out}", "tune run {cfg} out={out}"])
def test_what_is_no_script_is_named_unless_the_words_are_the_command(
    tmp_path: Path, command: str
) -> None:
    [note] = notes(tmp_path, command, "launcher: python\n")
    first = command.split(maxsplit=1)[0]
    assert f"{first!r} is not a Python script" in note and "write launcher: none" in note


def test_without_a_launcher_any_program_may_come_first(tmp_path: Path) -> None:
    assert notes(tmp_path, "bash train.sh {cfg} {out}", "launcher: none\n") == []
