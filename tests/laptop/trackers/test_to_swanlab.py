"""With SwanLab itself, offline."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from exported import BEGAN_S, cell

from boxcar.laptop.trackers.exported_cell import Point, offline

pytest.importorskip("swanlab", reason="swanlab is not installed")


def test_an_offline_run_has_all_that_is_to_be_sent_under_a_stable_id(tmp_path: Path) -> None:
    with offline(io.StringIO()):
        from boxcar.laptop.trackers import to_swanlab

        to_swanlab.write(tmp_path, cell())
        again = to_swanlab.write(tmp_path, cell(numbers={"acc": 0.5}))
    (run,) = (tmp_path / "swanlog").glob("run-*")
    assert str(run.relative_to(tmp_path)) == again and again.endswith(cell().id)
    (file,) = run.glob("*.swanlab")
    data = file.read_bytes()
    for text in (b"loss", b"val/acc", b"final/acc", b"a_seed1", b"tiny", cell().id.encode()):
        assert text in data, text
    config = (run / "files/config.yaml").read_text()
    assert "0.1" in config and "ab" * 32 in config


def test_keys_that_it_would_trim_to_one_stay_two(tmp_path: Path) -> None:
    points = (Point(1, BEGAN_S, {"acc": 0.5, "acc.": 0.25}),)
    with offline(io.StringIO()):
        from boxcar.laptop.trackers import to_swanlab

        where = to_swanlab.write(tmp_path, cell(points=points, config={"fold": "007"}))
    (file,) = (tmp_path / where).glob("*.swanlab")
    assert b"acc_2" in file.read_bytes()
    assert "007" in (tmp_path / where / "files/config.yaml").read_text()
