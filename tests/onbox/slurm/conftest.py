from __future__ import annotations

from pathlib import Path

import pytest
from pretended import Pretended


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretended:
    return Pretended(tmp_path / "s", monkeypatch)
