from __future__ import annotations

import os
from pathlib import Path

from boxcar.shared.process.strays import find


def written(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_a_declared_file_is_found_at_its_path_else_under_its_name(tmp_path: Path) -> None:
    written(
        tmp_path / "runs/1/best.pt",
        tmp_path / "best.pt",
        tmp_path / "runs/1/last.pt",
        tmp_path / "x/step_2.pt",
    )
    wanted = ("best.pt", "checkpoints/last.pt", "step_*.pt", "none.pt", "configs")
    odd = os.fsdecode(b"\xff.bin")
    written(tmp_path / "x" / odd)
    found = find(tmp_path, ("best.pt", "runs/", "x/"), (*wanted, "*.bin", "runs/?/"))
    assert found == {
        "best.pt": "best.pt",
        "checkpoints/last.pt": "runs/1/last.pt",
        "step_*.pt": "x/step_2.pt",
        "runs/?/": "runs/1",
    }
