from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

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


@pytest.mark.parametrize(
    ("kept", "named"),
    [('path = "/x/a.whl"', "/x/a.whl"), ('directory = "/x/it"', "/x/it"), ("", "boxcar-run")],
)
def test_a_tool_of_uv_is_named_as_it_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str, named: str
) -> None:
    receipt = f'requirements = [{{ name = "boxcar-run"{", " * bool(kept)}{kept} }}]'
    (tmp_path / "uv-receipt.toml").write_text(receipt)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    line = f"uv tool install --with torch,numpy --index https://i {named}"
    assert home.install_line("torch", "numpy", index="https://i") == line
