"""What can change a cell's numbers is written down, for every start of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from boxcar.shared import timestamp
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.training import run_manifest

V1 = Path(__file__).resolve().parents[1] / "data" / "v1" / "training" / "training.json"


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BOXCAR_OUT", str(tmp_path))
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def read(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "training.json").read_text())


def test_facts_are_merged_and_the_newest_stands_at_the_top(out: Path) -> None:
    run_manifest.record(effective_batch=256, precision="fp32")
    run_manifest.record(precision="bf16", compile={"mode": "default"})
    found = read(out)
    assert found["format"] == "boxcar.training/1"
    assert (found["effective_batch"], found["precision"]) == (256, "bf16")
    assert (found["torch"], found["world"]) == (torch.__version__, 1)
    (start,) = found["starts"]
    assert start["compile"] == {"mode": "default"} and start["precision"] == "bf16"


def test_every_process_adds_a_start_and_leaves_those_before_it(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, world in (("2026-01-01T00:00:00.000Z", "8"), ("2026-01-02T00:00:00.000Z", "4")):
        # What a new process finds: nothing in memory, and its own world.
        run_manifest._this_start.cache_clear()
        monkeypatch.setenv("WORLD_SIZE", world)
        monkeypatch.setattr(timestamp, "utc_now", lambda at=at: at)
        run_manifest.record(batch=1)
        run_manifest.record(seed=2)
    found = read(out)
    assert [(start["world"], start["batch"], start["seed"]) for start in found["starts"]] == [
        (8, 1, 2),
        (4, 1, 2),
    ]
    assert found["world"] == 4


def test_what_a_newer_program_wrote_is_kept(out: Path) -> None:
    run_manifest.record(seed=1)
    found = read(out)
    found["starts"][0]["driver"], found["later"] = "570", [1, 2]
    (out / "training.json").write_text(json.dumps(found))
    run_manifest.record(seed=2)
    assert read(out)["later"] == [1, 2] and read(out)["starts"][0]["driver"] == "570"


def test_only_rank_0_writes(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    run_manifest.record(seed=1)
    assert list(out.iterdir()) == []


def test_without_boxcar_it_lies_in_the_working_folder(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOXCAR_OUT")
    monkeypatch.chdir(out)
    run_manifest.record(seed=1)
    assert read(out)["seed"] == 1


def test_a_damaged_file_is_said_and_kept_aside(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, text in enumerate(['{"format": "boxcar.trai', '{"format": "boxcar.training/9"}']):
        (out / "training.json").write_text(text)
        run_manifest.record(seed=number)
        assert (out / f"training.json.damaged-{number + 1}").read_text() == text
        assert read(out)["seed"] == number
        assert f"kept as training.json.damaged-{number + 1}" in capsys.readouterr().err


def test_what_json_cannot_say_is_written_as_text(out: Path) -> None:
    run_manifest.record(dtype=torch.bfloat16, loss=float("nan"), shape=(1, 2))
    found = read(out)
    assert (found["dtype"], found["loss"], found["shape"]) == ("torch.bfloat16", "nan", [1, 2])


def test_an_unchanged_fact_writes_nothing(out: Path) -> None:
    run_manifest.record(shape=(1, 2), dtype=torch.bfloat16)
    before = (out / "training.json").stat().st_ino
    run_manifest.record(shape=(1, 2), dtype=torch.bfloat16)
    assert (out / "training.json").stat().st_ino == before


def test_the_names_of_the_file_itself_are_refused(out: Path) -> None:
    with pytest.raises(InputError, match="starts is reserved"):
        run_manifest.record(starts=[])


def test_a_folder_that_is_gone_does_not_end_the_training(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BOXCAR_OUT", str(out / "gone"))
    run_manifest.record(seed=1)
    run_manifest.record(seed=2)
    assert capsys.readouterr().err.count("are not written: No such file") == 1


def test_a_manifest_of_version_1_is_read_and_written_back_the_same() -> None:
    data = V1.read_bytes()
    found = codec.from_document(run_manifest.Training, data, "v1")
    assert codec.to_document(found) == data
    assert [start.world for start in found.starts] == [8, 4]
