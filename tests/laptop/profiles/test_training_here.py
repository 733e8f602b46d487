from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from boxcar.laptop.profiles import training_here


def environment(folder: Path) -> str:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    return str(folder)


def test_the_active_environment_is_the_virtual_one_before_condas(tmp_path: Path) -> None:
    venv, conda = environment(tmp_path / "venv"), environment(tmp_path / "conda")
    both = {"VIRTUAL_ENV": venv, "CONDA_PREFIX": conda}
    assert training_here.active(both) == f"{venv}/bin/python"
    assert training_here.active({"CONDA_PREFIX": conda}) == f"{conda}/bin/python"


@pytest.mark.parametrize("folder", ["", "relative", "/gone"])
def test_what_is_no_environment_is_none(folder: str) -> None:
    assert training_here.active({"VIRTUAL_ENV": folder}) is None


@pytest.mark.parametrize(
    ("has_torch", "has_active", "is_own"),
    [(True, False, True), (True, True, False), (False, False, False), (False, True, False)],
)
def test_boxcars_own_python_trains_only_where_no_other_is_active_or_it_alone_has_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_torch: bool, has_active: bool, is_own: bool
) -> None:
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    venv = environment(tmp_path / "venv")
    (tmp_path / "venv/lib/python3.12/site-packages" / ("torch" * has_active)).mkdir(parents=True)
    monkeypatch.setenv("VIRTUAL_ENV", venv)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if has_torch else None)
    assert (training_here.for_training() == sys.executable) == is_own
    monkeypatch.delenv("VIRTUAL_ENV")
    assert training_here.for_training() == sys.executable
