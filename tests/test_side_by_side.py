"""Tests in forked processes: each is run once, and one that ends its process fails alone."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from side_by_side import hide_gpus

HERE = Path(__file__).parent
ONE = """
import os, signal, warnings
import pytest
from side_by_side import hide_gpus

@pytest.fixture(scope="module")
def made():
    return []

def test_first(made):
    made.append(os.getpid())

def test_same_process_and_fixture(made):
    assert made == [os.getpid()]

def test_ends_its_process():
    os.kill(os.getpid(), signal.SIGKILL)

def test_comes_after():
    warnings.warn("a warning of a test")
"""
OTHER = """
import torch

# So many that torch shares them out among threads.
MANY = torch.arange(600_000.0)

def test_goes_on_calculating_in_a_forked_process():
    assert MANY.mean().item() == 299_999.5

def test_says(announce, tmp_path):
    announce(f"slow, in {tmp_path.parent.name}")

def test_fails():
    print("what it printed")
    assert 1 == 2
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    folder = tmp_path_factory.mktemp("side by side")
    for name in ("conftest.py", "side_by_side.py", "robot.py", "waiting.py"):
        shutil.copy(HERE / name, folder)
    (folder / "test_one.py").write_text(ONE)
    (folder / "test_other.py").write_text(OTHER)
    for name in ("near/test_1.py", "near/test_2.py", "other/test_3.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("def test_in_a_folder(): pass\n")
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    command = [sys.executable, "-m", "pytest", "-v", "--side-by-side", "2", "--durations=3"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_each_test_is_run_once_and_its_outcome_is_told(said):
    told = re.findall(r"(PASSED|FAILED) .*::(test_\w+)", said.stdout.partition("= FAILURES")[0])
    names = [*re.findall(r"def (test_\w+)", ONE + OTHER), *["test_in_a_folder"] * 3]
    assert sorted(name for _, name in told) == sorted(names)
    assert {name for word, name in told if word == "FAILED"} == {
        "test_ends_its_process", "test_fails",
    }  # fmt: skip
    assert (said.returncode, said.stdout.count("2 failed, 8 passed")) == (1, 1)


def test_what_a_test_printed_and_warned_of_is_shown(said):
    for words in ("what it printed", "assert 1 == 2", "a warning of a test", "slowest 3 durations"):
        assert words in said.stdout


def test_a_test_whose_process_was_killed_is_named(said):
    assert "the process that ran this test ended with -9" in said.stdout


def test_what_is_announced_reaches_the_terminal(said):
    assert re.search(r"^slow, in w\d$", said.stderr, re.M)


@pytest.mark.parametrize(
    ("markers", "has_gpus", "is_hidden"),
    [
        ("", True, True),
        ("not faults and not gpu", True, True),
        ("gpu", True, False),
        ("gpu and not faults", True, False),
        ("not gpu", False, False),
    ],
)
def test_only_the_tests_for_gpus_see_them(markers: str, has_gpus: bool, is_hidden: bool) -> None:
    env = {"CUDA_VISIBLE_DEVICES": "0,1"}
    hide_gpus(markers, has_gpus, env)
    assert env["CUDA_VISIBLE_DEVICES"] == ("" if is_hidden else "0,1")
