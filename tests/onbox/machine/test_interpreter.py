from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from onbox.machine import interpreter


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_interpreter_tells_itself_and_what_it_has():
    found = interpreter.look(sys.executable)
    assert found["path"] == sys.executable
    assert found["version"] == ".".join(map(str, sys.version_info[:3]))
    assert found["packages"]["deepspeed"] is None
    assert "torch" in found["packages"]


def test_the_hook_comes_first_as_in_the_wrappers_and_may_print_what_it_likes(tmp_path):
    (tmp_path / "conda").mkdir()
    (tmp_path / "conda/mypython").symlink_to(sys.executable)
    hook = f"echo Welcome\necho $UNSET_NAME\nfalse\nset -- activate\nPATH={tmp_path}/conda:$PATH"
    assert interpreter.look("mypython", hook)["version"]
    assert "no program" in interpreter.look("mypython")["problem"]


def test_a_torch_is_found_and_not_imported(tmp_path, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert interpreter.look(sys.executable)["packages"]["torch"]
    assert interpreter.cuda(sys.executable)["problem"].endswith("imported")


def test_a_program_that_is_no_python_is_a_problem_in_words(tmp_path):
    python = script(tmp_path / "python", "echo 'not me' >&2; exit 3")
    assert interpreter.look(python)["problem"] == f"{python} ended with 3: not me"
    assert "no program" in interpreter.look(str(tmp_path / "none"))["problem"]


def test_a_program_in_our_home_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    script(tmp_path / "python", 'echo \'{"version": "9"}\'')
    assert interpreter.look("~/python") == {"version": "9"}


def test_what_hangs_is_given_up_and_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(interpreter, "LOOK_TIMEOUT_S", 0.3)
    python = script(tmp_path / "python", f"echo $$ > {tmp_path}/pid; sleep 600 & wait")
    assert "0.3 s" in interpreter.look(python)["problem"]
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_daemon_that_the_hook_leaves_behind_holds_nobody_up(tmp_path):
    hook = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' &\n"
    hook += f"while ! [ -s {tmp_path}/pid ]; do sleep 0.01; done"
    try:
        assert interpreter.look(sys.executable, hook)["version"]
    finally:
        os.kill(int((tmp_path / "pid").read_text()), 9)
