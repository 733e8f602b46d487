from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files.plan import Box
from boxcar.shared.triage.log_lines import Tail
from onbox.machine import end_evidence, gpus, interpreter, place


def test_the_places_of_a_plan_are_those_of_this_box(make_run, monkeypatch):
    monkeypatch.setenv("HOME", "/home/a b")
    made = make_run({"a": {}}).plan
    made = replace(made, durable_dir="~/tier", boxes=(Box("box-a", "~/data", "~/c.json"),))
    assert place.tier(made).root == Path("/home/a b/tier/boxcar/tiny")
    assert place.scratch(made, "box-a").root == Path("/home/a b/data/boxcar/tiny")


def test_a_queue_or_box_that_is_not_planned_is_named(make_run):
    made = make_run({"a": {}}).plan
    assert place.box_of(made, "q2") == "box-b"
    with pytest.raises(InputError, match=r"q9.*q1, q2"):
        place.box_of(made, "q9")
    with pytest.raises(InputError, match="b9"):
        place.scratch(made, "b9")


def test_a_relative_place_is_refused(make_run):
    made = make_run({"a": {}}).plan
    with pytest.raises(DamagedError):
        place.tier(replace(made, durable_dir="tier"))


# --- interpreters


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_interpreter_tells_itself_and_what_it_has():
    found = interpreter.look_at_python(sys.executable)
    assert found["path"] == sys.executable
    assert found["version"] == ".".join(map(str, sys.version_info[:3]))
    assert found["packages"]["deepspeed"] is None
    assert "torch" in found["packages"]


def test_the_hook_comes_first_as_in_the_wrappers_and_may_print_what_it_likes(tmp_path):
    (tmp_path / "conda").mkdir()
    (tmp_path / "conda/mypython").symlink_to(sys.executable)
    hook = f"echo Welcome\necho $UNSET_NAME\nfalse\nset -- activate\nPATH={tmp_path}/conda:$PATH"
    assert interpreter.look_at_python("mypython", hook)["version"]
    assert "no program" in interpreter.look_at_python("mypython")["problem"]


def test_a_torch_is_found_and_not_imported(tmp_path, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert interpreter.look_at_python(sys.executable)["packages"]["torch"]
    assert interpreter.cuda(sys.executable)["problem"].endswith("imported")


def test_a_program_that_is_no_python_is_a_problem_in_words(tmp_path):
    python = script(tmp_path / "python", "echo 'not me' >&2; exit 3")
    assert interpreter.look_at_python(python)["problem"] == f"{python} ended with 3: not me"
    assert "no program" in interpreter.look_at_python(str(tmp_path / "none"))["problem"]


def test_a_program_in_our_home_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    script(tmp_path / "python", 'echo \'{"version": "9"}\'')
    assert interpreter.look_at_python("~/python") == {"version": "9"}


def test_what_hangs_is_given_up_and_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(interpreter, "LOOK_TIMEOUT_S", 0.3)
    python = script(tmp_path / "python", f"echo $$ > {tmp_path}/pid; sleep 600 & wait")
    assert "0.3 s" in interpreter.look_at_python(python)["problem"]
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_daemon_that_the_hook_leaves_behind_holds_nobody_up(tmp_path):
    hook = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' &\n"
    hook += f"while ! [ -s {tmp_path}/pid ]; do sleep 0.01; done"
    try:
        assert interpreter.look_at_python(sys.executable, hook)["version"]
    finally:
        os.kill(int((tmp_path / "pid").read_text()), 9)


# --- evidence of an end


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


def test_the_error_file_that_torchrun_names_first_is_read(file):
    assert end_evidence.error_file(summary(file) + summary(file.parent / "x")) == STACK


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"message": 1}', '{"message": {"extraInfo": []}}']
)
def test_what_has_another_form_says_nothing(file, text):
    file.write_text(text)
    assert end_evidence.error_file(summary(file)) == ""


def test_what_is_no_file_is_not_waited_for(file, tmp_path):
    file.unlink()
    os.mkfifo(file)
    assert end_evidence.error_file(summary(file)) == ""
    assert end_evidence.error_file("error_file: /etc/passwd") == ""


def test_a_gpu_that_is_lost_is_told_and_one_that_lacks_a_gauge_is_not(monkeypatch):
    rows = [{"name": "A"}, {"problem": "GPU is lost"}, {"problem": "Not Supported"}]
    monkeypatch.setattr(gpus, "ask_child", lambda: rows)
    assert end_evidence.beside(Tail("", 7)).gpu_problems == ("GPU 1: GPU is lost",)
    assert end_evidence.beside(Tail("", 7)).log_begins_at_line == 7


def test_a_gpu_that_another_cell_has_ended_no_attempt(monkeypatch):
    monkeypatch.setattr(gpus, "ask_child", lambda: [{"name": "A"}, {"problem": "GPU is lost"}])
    assert end_evidence.beside(Tail("", 1), ("0",)).gpu_problems == ()
    assert end_evidence.beside(Tail("", 1), ("0", "1")).gpu_problems
    assert end_evidence.beside(Tail("", 1), ("MIG-x",)).gpu_problems, "whose card nobody knows"
