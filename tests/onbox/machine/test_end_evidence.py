from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from boxcar.shared.triage.log_lines import Tail
from onbox.machine import end_evidence, gpus

STACK = "Traceback (most recent call last):\nValueError: boom\n"


def summary(path: Path) -> str:
    return (
        "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n"
        f"  exitcode  : 1 (pid: 7)\n  error_file: {path}\n  traceback : x\n"
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "none_1" / "error.json"
    found.parent.mkdir()
    found.write_text(json.dumps({"message": {"extraInfo": {"py_callstack": STACK}}}))
    return found


def test_the_error_file_that_torchrun_names_first_is_read(file: Path) -> None:
    assert end_evidence.error_file(summary(file) + summary(file.parent / "x")) == STACK


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"message": 1}', '{"message": {"extraInfo": []}}']
)
def test_what_has_another_form_says_nothing(file: Path, text: str) -> None:
    file.write_text(text)
    assert end_evidence.error_file(summary(file)) == ""


def test_what_is_no_file_is_not_waited_for(file: Path, tmp_path: Path) -> None:
    file.unlink()
    os.mkfifo(file)
    assert end_evidence.error_file(summary(file)) == ""
    assert end_evidence.error_file("error_file: /etc/passwd") == ""


def test_a_gpu_that_is_lost_is_told_and_one_that_lacks_a_gauge_is_not(monkeypatch) -> None:
    rows = [{"name": "A"}, {"problem": "GPU is lost"}, {"problem": "Not Supported"}]
    monkeypatch.setattr(gpus, "ask_child", lambda: rows)
    assert end_evidence.beside(Tail("", 7)).gpu_problems == ("GPU 1: GPU is lost",)
    assert end_evidence.beside(Tail("", 7)).log_begins_at_line == 7
