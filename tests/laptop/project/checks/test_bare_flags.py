from __future__ import annotations

from pathlib import Path

import pytest
from tiny_project import make_project

from boxcar.laptop.project.grids.grid_lines import Asked
from boxcar.laptop.project.project import open_project
from boxcar.laptop.verbs.grid import grid
from boxcar.laptop.verbs.plan import plan

COMMAND = "train.py --out {out} --epochs {epochs}"
HEAD = "import argparse\np = argparse.ArgumentParser()\n"
FLAGS = """\
p.add_argument("--out")
p.add_argument("--epochs")
p.add_argument("--lr")
p.add_argument("--batch-size")
p.add_argument("--amp", action="store_true")
"""


def notes(
    root: Path, words: str, script: str = HEAD + FLAGS + "p.parse_args()\n", command: str = COMMAND
) -> list[str]:
    make_project(root, {"q1": [f"- - {words}"]}, command=command, epochs=2)
    (root / "train.py").write_text(script)
    found = open_project(root / "job.yaml", "local", despite_faults=True)
    return [str(each) for each in found.take_notes() if "would refuse" in each]


@pytest.mark.parametrize(
    ("words", "typed"),
    [("lr=0.1", "--lr=0.1"), ("batch_size=8", "--batch-size=8"), ("--amp=1 lr=2", "--lr=2")],
)
def test_a_flag_of_argparse_without_its_dashes_is_named(
    tmp_path: Path, words: str, typed: str
) -> None:
    [said] = notes(tmp_path, words)
    assert said.startswith(f"train.py takes {typed.partition('=')[0]} and would refuse ")
    assert said.endswith(f": write {typed}")


@pytest.mark.parametrize("words", ["--lr=0.1", "--lr 0.1", "other=1", "amp=1", "-- lr=1"])
def test_other_words_are_left_alone(tmp_path: Path, words: str) -> None:
    assert not notes(tmp_path, words)


@pytest.mark.parametrize(
    "script",
    [
        HEAD + FLAGS + 'p.add_argument("opts", nargs="*")\n',
        HEAD + FLAGS + "p.parse_known_args()\n",
        "from omegaconf import OmegaConf\n" + HEAD + FLAGS,
        "import hydra\n" + HEAD + FLAGS,
        "import sys\nlr = sys.argv[1]\n" + HEAD + FLAGS,
        "import click\n@click.option('--lr')\ndef main(lr): ...\n",
    ],
)
def test_a_script_that_may_take_the_word_is_left_alone(tmp_path: Path, script: str) -> None:
    assert not notes(tmp_path, "lr=0.1", script)


def test_words_behind_an_option_that_takes_pairs_are_its_own(tmp_path: Path) -> None:
    script = HEAD + FLAGS + 'p.add_argument("--opts", nargs="+")\n'
    assert not notes(tmp_path, "lr=0.1 batch_size=8", script, f"{COMMAND} --opts")


def test_plan_and_grid_say_it_once_for_each_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert notes(tmp_path, "lr=0.1")
    found = open_project(tmp_path / "job.yaml", "local", despite_faults=True)
    plan(found)
    assert capsys.readouterr().err.count("would refuse lr=0.1: write --lr=0.1\n") == 1
    grid(found, Asked("-", None, words=("lr=0.2,0.3",)))
    said = capsys.readouterr().err
    assert said.count("would refuse") == 1
    assert "would refuse lr=0.2: write --set=--lr=0.2\n" in said
