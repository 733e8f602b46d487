from __future__ import annotations

import importlib.util
import sys

import pytest

from boxcar.laptop.common import home


@pytest.mark.parametrize(
    ("found", "line"),
    [(object(), f"{sys.executable} -m pip install wandb"), (None, "pipx inject boxcar-run wandb")],
)
def test_what_is_typed_is_for_the_environment_in_which_boxcar_runs(
    monkeypatch: pytest.MonkeyPatch, found: object, line: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    assert home.install_line("wandb") == line
