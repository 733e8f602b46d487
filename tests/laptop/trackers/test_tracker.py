from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

from boxcar.laptop.trackers import tracker
from boxcar.shared.errors import InputError

FOLDER = Path(tracker.__file__).parent


def test_each_tracker_has_a_module_and_each_module_is_in_the_table() -> None:
    assert {path.stem.removeprefix("to_") for path in FOLDER.glob("to_*.py")} == {*tracker.NEXT}


@pytest.mark.parametrize("name", tracker.NEXT)
def test_each_tracker_writes_a_cell(name: str) -> None:
    """Also where its library is not installed: it imports that when it writes."""
    module = importlib.import_module(f"boxcar.laptop.trackers.to_{name}")
    assert list(inspect.signature(module.write).parameters) == ["folder", "cell"]


def test_a_tracker_that_does_not_exist_and_one_that_is_not_installed_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InputError, match="expected tensorboard, wandb, mlflow, swanlab, found 'x'"):
        tracker.check_name("x")
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "wandb" else real(name)
    )
    with pytest.raises(InputError, match=r"wandb is not installed .* -m pip install wandb"):
        tracker.load("wandb")


def test_a_folder_of_logs_is_not_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wandb").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(InputError, match="wandb is not installed"):
        tracker.load("wandb")


def test_the_next_step_can_be_typed(tmp_path: Path) -> None:
    found = tracker.next_step("wandb", tmp_path / "a b")
    assert found == f"wandb sync '{tmp_path}/a b'/wandb/offline-run-*"
