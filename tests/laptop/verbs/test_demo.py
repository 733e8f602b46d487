"""What the demo says before it begins; tests/e2e/test_digits.py runs it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from boxcar.laptop.verbs.demo import demo
from boxcar.shared.errors import InputError


def test_without_torch_it_says_the_line_to_type_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec

    def without_torch(name: str) -> Any:
        return None if name == "torch" else find_spec(name)

    monkeypatch.setattr(importlib.util, "find_spec", without_torch)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="has no torch") as refused:
        demo()
    assert refused.value.exit_code == 2
    line = str(refused.value).partition("type: ")[2]
    index = "--extra-index-url https://download.pytorch.org/whl/cpu"
    assert line == f"{sys.executable} -m pip install torch {index}"
    assert list(tmp_path.iterdir()) == []
