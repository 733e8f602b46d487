from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.paths import ScratchPaths
from onbox.checkpoint import older_checkpoint


def test_a_folder_is_put_aside_and_comes_back_whole(tmp_path: Path):
    scratch = ScratchPaths(tmp_path, "r")
    folder = scratch.out("c") / "checkpoint-5"
    folder.mkdir(parents=True)
    (folder / "model.pt").write_bytes(b"5")
    older_checkpoint.move_aside(scratch, "c", 1, ["checkpoint-5", "gone"])
    assert list(scratch.out("c").iterdir()) == []
    assert older_checkpoint.move_back(scratch, "c", 1, 1) == ["checkpoint-5"]
    assert (folder / "model.pt").read_bytes() == b"5"


def test_nothing_is_put_aside_from_outside_of_the_cell(tmp_path: Path):
    scratch = ScratchPaths(tmp_path, "r")
    (tmp_path / "secret").write_bytes(b"x")
    with pytest.raises(DamagedError):
        older_checkpoint.move_aside(scratch, "c", 1, ["../../../../../secret"])
