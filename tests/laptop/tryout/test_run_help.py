"""A script's --help, run in a copy and bounded: whatever the script does with it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from living import living

from boxcar.laptop.tryout import run_help


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "我的 项目"
    made.mkdir()
    return made


def help_of(root: Path, source: str, name: str = "train it.py") -> run_help.Said:
    (root / name).write_text(source)
    return run_help.run(root, sys.executable, [name, "--help"])


def test_what_it_prints_comes_back_also_from_a_module_beside_it(root: Path) -> None:
    (root / "options.py").write_text(
        "import argparse\ndef get_args():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--out')\n    return p.parse_args()\n"
    )
    said = help_of(root, "import options\noptions.get_args()\n")
    assert said.problem == ""
    assert "--out OUT" in said.text


def test_it_runs_in_a_copy_with_a_home_of_its_own_and_no_secret(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "secret")
    source = (
        "import os, pathlib\n"
        "pathlib.Path('left').touch()\n"
        "pathlib.Path(pathlib.Path.home(), 'left').touch()\n"
        "print(os.environ.get('WANDB_API_KEY'), os.environ['CUDA_VISIBLE_DEVICES'] == '')\n"
        "print(os.getcwd(), pathlib.Path.home())\n"
    )
    said = help_of(root, source)
    assert "None True" in said.text
    assert sorted(path.name for path in root.iterdir()) == ["train it.py"]
    copy, home = said.text.split("\n")[1].split(" ", 1)
    assert not Path(copy).exists() and not Path(home).exists()


def test_large_files_are_not_copied(root: Path) -> None:
    (root / "weights.bin").write_bytes(bytes((1 << 20) + 1))
    (root / "small.yaml").write_text("a: 1")
    said = help_of(root, "import os\nprint(sorted(os.listdir('.')))\n")
    assert "['small.yaml', 'train it.py']" in said.text


def test_one_that_trains_is_ended_with_all_that_it_started(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_help, "TIMEOUT_S", 2.0)
    source = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(999)', __file__])\n"
        "while True:\n    print('step', flush=True)\n    time.sleep(0.01)\n"
    )
    said = help_of(root, source, "endless_training.py")
    assert said == run_help.Said("", "did not end within 2 s and was ended")
    assert [each for each in living(root) if "endless_training" in each.words] == []


def test_one_that_prints_without_end_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_help.run_program, "MOST_BYTES", 1 << 16)
    said = help_of(root, "while True:\n    print('x' * 1000)\n")
    assert said == run_help.Said("", "printed without end and was ended")


def test_one_that_fails_says_with_what(root: Path) -> None:
    said = help_of(root, "print('--out OUT')\nimport not_there\n")
    assert said.problem == "ended with 1: ModuleNotFoundError: No module named 'not_there'"
    assert "--out OUT" in said.text


def test_it_waits_for_nobody_to_type(root: Path) -> None:
    assert "EOFError" in help_of(root, "input('really? ')\n").problem


def test_where_the_system_lets_it_there_is_no_network(root: Path) -> None:
    if not run_help._alone():
        pytest.skip("this system lets no user leave the network")
    said = help_of(root, "print(open('/proc/net/dev').read())\n").text
    cards = [line.partition(":")[0].strip() for line in said.splitlines() if ":" in line]
    assert cards == ["lo"]


def test_a_python_that_is_not_there_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_help, "_alone", lambda: ())
    (root / "t.py").touch()
    assert "could not be started" in run_help.run(root, "/no/python", ["t.py"]).problem
