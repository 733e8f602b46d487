"""With W&B itself, offline; what it wrote is read back by its own reader."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest
from exported import BEGAN_S, cell

from boxcar.laptop.trackers.exported_cell import Point, offline

pytest.importorskip("wandb", reason="wandb is not installed")


def test_an_offline_run_has_config_curves_and_numbers_under_a_stable_id(tmp_path: Path) -> None:
    from wandb.proto import wandb_internal_pb2 as pb

    from boxcar.laptop.trackers import to_wandb

    with offline(io.StringIO()):
        where = to_wandb.write(tmp_path, cell())
        again = to_wandb.write(tmp_path, cell(numbers={"acc": 0.5}))
    runs = list((tmp_path / "wandb").iterdir())
    assert [str(run.relative_to(tmp_path)) for run in runs] == [again]
    assert where.endswith(cell().id) and again.endswith(cell().id)
    (file,) = runs[0].glob("*.wandb")
    records = [pb.Record.FromString(data) for data in leveldb_records(file.read_bytes())]
    run = next(one.run for one in records if one.HasField("run"))
    assert (run.run_id, run.project, run.run_group) == (cell().id, "tiny", "a")
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert config["lr"] == 0.1 and config["boxcar.manifest"] == "ab" * 32
    rows = [
        {item.key or item.nested_key[0]: json.loads(item.value_json) for item in one.history.item}
        for one in records
        if one.HasField("history")
    ]
    assert [row["_step"] for row in rows] == [1, 2, 5]
    assert math.isnan(float(rows[1]["loss"])) and rows[2]["val/acc"] == 0.75
    assert not any(path.name == "wandb-metadata.json" for path in runs[0].rglob("*"))


def test_its_times_are_the_trainings_and_no_key_of_a_script_is_dropped(tmp_path: Path) -> None:
    from wandb.proto import wandb_internal_pb2 as pb

    from boxcar.laptop.trackers import to_wandb

    points = (Point(1, BEGAN_S, {"_step": 7.0}), Point(2, BEGAN_S + 3600, {"_runtime": 8.0}))
    config = {"fold": "1_2", "data": "007", "sha": "12e4567", "boxcar.id": "mine", "width": 8}
    with offline(io.StringIO()):
        where = to_wandb.write(tmp_path, cell(points=points, config=config))
    (file,) = (tmp_path / where).glob("*.wandb")
    records = [pb.Record.FromString(data) for data in leveldb_records(file.read_bytes())]
    rows = [
        {item.key or item.nested_key[0]: json.loads(item.value_json) for item in one.history.item}
        for one in records
        if one.HasField("history")
    ]
    assert [row["_timestamp"] for row in rows] == [BEGAN_S, BEGAN_S + 3600]
    assert rows[0]["_step_2"] == 7.0 and rows[1]["_runtime_2"] == 8.0
    told = {
        item.key: json.loads(item.value_json)
        for one in records
        if one.HasField("run")
        for item in one.run.config.update
    }
    assert {key: told[key] for key in config} == config and told["boxcar.id_2"] == cell().id


def leveldb_records(data: bytes) -> list[bytes]:
    """The records of its log: blocks of 32 KiB behind a head of 7 bytes, each record in parts."""
    block_bytes, head_bytes = 32768, 7
    found, part, at = [], b"", 7  # the file begins with a head of its own
    while at + head_bytes <= len(data):
        if block_bytes - at % block_bytes < head_bytes:
            at += block_bytes - at % block_bytes
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        part += data[at + head_bytes : at + head_bytes + size]
        at += head_bytes + size
        if kind in (1, 4):  # whole, or the last of its parts
            found.append(part)
            part = b""
    return found
