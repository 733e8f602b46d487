"""What the demo says before it begins; tests/e2e/test_digits.py runs it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from boxcar.laptop.common import show
from boxcar.laptop.verbs.demo import demo, name_the_project
from boxcar.shared.errors import Command, InputError


def test_without_torch_it_says_the_line_to_type_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec

    def without_torch(name: str) -> Any:
        return None if name == "torch" else find_spec(name)

    monkeypatch.setattr(importlib.util, "find_spec", without_torch)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="lacks torch") as refused:
        demo()
    assert refused.value.exit_code == 2
    line = str(refused.value).partition("type: ")[2]
    index = "--extra-index-url https://download.pytorch.org/whl/cpu"
    assert line == f"{sys.executable} -m pip install torch {index}"
    assert list(tmp_path.iterdir()) == []


def test_an_environment_of_pipx_is_filled_by_pipx(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    lacks = ("torch", "safetensors", "pip")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in lacks else find_spec(name)
    )
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="lacks torch, safetensors") as refused:
        demo()
    index = "'--extra-index-url https://download.pytorch.org/whl/cpu'"
    line = str(refused.value).partition("type: ")[2]
    assert line == f"pipx inject boxcar-run torch safetensors --pip-args {index}"


def test_it_trains_with_the_environment_that_is_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    python = tmp_path / "venv" / "bin" / "python"
    with pytest.raises(InputError, match=f"{python} lacks torch, numpy, safetensors"):
        demo()


def test_what_it_suggests_works_where_it_was_typed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(show, "_flags", [])
    monkeypatch.setattr(show, "_program", [])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    beside = tmp_path / "my bin" / "boxcar"
    beside.parent.mkdir()
    beside.touch()
    monkeypatch.setattr(sys, "executable", str(beside.with_name("python")))
    name_the_project()
    suggested = show.typed(Command("down", ("--approve", "123")))
    assert suggested == f"'{beside}' down --job boxcar-demo/job.yaml --approve 123"
