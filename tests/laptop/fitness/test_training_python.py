"""A training's Python that is none is refused on this machine before anything is sent."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_project import TinyProject, make_project

from boxcar.laptop.fitness import training_python
from boxcar.laptop.project.project import open_project
from boxcar.laptop.verbs.launch import launch
from boxcar.shared.errors import InputError

WRAPPER = '#!/bin/sh\nexec "${PYTHON_BY_HOOK:-%s}" "$@"\n'


@pytest.fixture
def tiny(tmp_path: Path) -> TinyProject:
    return make_project(tmp_path / "project", {"q1": ["configs/a.json one"]})


def ended(tiny: TinyProject, python: str, hook: str = "") -> str | None:
    plan = open_project(tiny.root / "job.yaml", "local").plan
    return training_python.ended_otherwise(replace(plan, training_python=python), hook)


def test_launch_refuses_a_shell_as_python_before_anything_is_sent(tiny: TinyProject) -> None:
    (tiny.root / "profiles").mkdir()
    text = "name: shell\nextends: local\nenv: {training_python: /bin/bash}\n"
    (tiny.root / "profiles" / "shell.yaml").write_text(text)
    project = open_project(tiny.root / "job.yaml", "shell")
    with pytest.raises(InputError, match="/bin/bash ended with 2"):
        launch(project, environ={})
    assert not any(tiny.local.rglob("release.json"))


@pytest.mark.parametrize("program", ["true", "echo", "cat", "sh"])
def test_what_does_not_do_what_python_does_is_none(tiny: TinyProject, program: str) -> None:
    assert ended(tiny, program)


def test_a_python_and_what_execs_one_are_taken_also_after_a_hook(
    tiny: TinyProject, tmp_path: Path
) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(WRAPPER % sys.executable)
    wrapper.chmod(0o755)
    assert ended(tiny, sys.executable) is None and ended(tiny, str(wrapper)) is None
    wrapper.write_text(WRAPPER % "/bin/false")
    assert ended(tiny, str(wrapper)) == "1"
    assert ended(tiny, str(wrapper), f"export PYTHON_BY_HOOK={sys.executable}; echo hello") is None


def test_a_program_that_is_not_there_or_does_not_answer_is_left_to_its_queue(
    tiny: TinyProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended(tiny, str(tmp_path / "none")) is None and ended(tiny, "no-such", "true") is None
    monkeypatch.setattr(training_python, "_TIMEOUT_S", 0.1)
    assert ended(tiny, sys.executable, "exec sleep 30") is None
