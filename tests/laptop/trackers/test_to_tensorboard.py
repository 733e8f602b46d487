"""With TensorBoard itself; its own reader says what lies there."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from exported import BEGAN_S, cell

# Not its name alone: a folder of our tests has that one too.
pytest.importorskip("tensorboard.compat", reason="tensorboard is not installed")


def test_every_series_has_its_steps_and_times_with_nan_and_gaps(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from boxcar.laptop.trackers import to_tensorboard

    assert to_tensorboard.write(tmp_path, cell()) == "tiny/a_seed1"
    found = EventAccumulator(str(tmp_path / "tiny/a_seed1"))
    found.Reload()
    assert set(found.Tags()["scalars"]) == {"loss", "lr", "val/acc", "final/acc"}
    loss = found.Scalars("loss")
    assert [one.step for one in loss] == [1, 2, 5] and math.isnan(loss[1].value)
    assert [one.wall_time for one in loss] == [BEGAN_S + 1, BEGAN_S + 2, BEGAN_S + 5]
    assert [(one.step, one.value) for one in found.Scalars("final/acc")] == [(5, 0.75)]


def test_its_hyperparameters_and_its_proof_are_there(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.plugins.hparams import metadata

    from boxcar.laptop.trackers import to_tensorboard

    (tmp_path / "x").mkdir()
    where = to_tensorboard.write(tmp_path / "x", cell())
    (file,) = (tmp_path / "x" / where).iterdir()
    values = {
        value.tag: value
        for event in EventFileLoader(str(file)).Load()
        for value in event.summary.value
    }
    start = metadata.parse_session_start_info_plugin_data(
        values[metadata.SESSION_START_INFO_TAG].metadata.plugin_data.content
    )
    assert start.hparams["lr"].number_value == 0.1 and start.hparams["skip"].bool_value
    assert start.hparams["boxcar.manifest"].string_value == "ab" * 32
    text = values["config"].tensor.string_val[0].decode()
    assert "| model.name | x\\|<b> |" in text


def test_the_same_cell_gives_the_same_bytes(tmp_path: Path) -> None:
    from boxcar.laptop.trackers import to_tensorboard

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        to_tensorboard.write(tmp_path / name, cell())
    one, two = (
        {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    )
    assert one == two and one
