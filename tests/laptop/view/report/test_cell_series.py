"""The series of what was pulled, from files that libraries wrote (tests/data/numbers)."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from boxcar.laptop.view.report import cell_series
from boxcar.laptop.view.report.cell_series import Pulled, Series
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import Metric
from boxcar.shared.metrics.records import MOST_POINTS, thin

REAL = Path(__file__).parents[3] / "data" / "numbers"
TIMES = {"started_at": "2026-11-28T05:00:00.000Z", "ended_at": "2026-11-28T06:00:00.000Z"}


def pulled(folder: Path, *metrics: Metric, log_begins_at_bytes: int = 0) -> Pulled:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    files = [FileRecord(str(path.relative_to(folder)), path.stat().st_size, "") for path in paths]
    told: dict[str, Any] = {"run": "r", "cell": "c", "queue": "q", "box": "b", "release": "x"}
    told |= {"attempt": 1, "task": "t", "cfg": "", "epochs": 1, **TIMES}
    made = Manifest(**told, files=tuple(files), log_begins_at_bytes=log_begins_at_bytes)
    return Pulled(folder, made, metrics)


def put(folder: Path, name: str, content: str | Path) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Path):
        shutil.copy(content, folder / name)
    else:
        (folder / name).write_text(content)


def series(folder: Path, *metrics: Metric, **told: int) -> Series:
    [found] = cell_series.of_cells([pulled(folder, *metrics, **told)])
    return found


def values(found: Series, key: str) -> list[float]:
    return [value for _, _, value in found[key]]


def test_a_metric_has_its_whole_series_from_log_csv_and_json(tmp_path: Path) -> None:
    put(tmp_path, "c.log", "loss 9\n" + "".join(f"loss {n}.5e-05\n" for n in range(3)))
    put(tmp_path, "metrics.csv", REAL / "lightning/metrics.csv")
    put(tmp_path, "out/trainer_state.json", REAL / "trainer/trainer_state.json")
    found = series(
        tmp_path,
        Metric("loss", "log", "loss ([0-9.]+)", best="min"),
        Metric("val", "csv", "metrics.csv", key="val_loss"),
        Metric("eval", "json", "out/trainer_state.json", key="eval_loss"),
        Metric("gone", "csv", "gone.csv", key="a"),
        log_begins_at_bytes=len("loss 9\n"),
    )
    assert values(found, "loss") == [0.5e-05, 1.5e-05, 2.5e-05]
    assert [step for step, _, _ in found["val"]] == [3.0, 7.0, 11.0]
    assert [step for step, _, _ in found["eval"]] == [4.0, 8.0, 12.0]
    assert "gone" not in found and "train_loss" in found, "what files hold comes behind"
    assert list(found)[:3] == ["loss", "val", "eval"]


def test_what_the_script_reported_comes_first(tmp_path: Path) -> None:
    put(
        tmp_path,
        "progress.jsonl",
        '{"step": 1, "val_loss": 7}\n{torn\n{"step": 2, "val_loss": 8}\n',
    )
    put(tmp_path, "metrics.csv", REAL / "lightning/metrics.csv")
    assert values(series(tmp_path), "val_loss") == [7, 8]


def test_a_resume_goes_on_in_another_file_of_the_same_name(tmp_path: Path) -> None:
    put(tmp_path, "version_9/metrics.csv", "step,loss\n1,0.9\n2,0.8\n3,0.7\n")
    put(tmp_path, "version_10/metrics.csv", "step,loss\n3,0.5\n4,0.4\n")
    found = series(tmp_path)["loss"]
    assert [(step, value) for step, _, value in found] == [
        *((1, 0.9), (2, 0.8), (3, 0.7), (3, 0.5), (4, 0.4))
    ]
    again = '{"step": %d, "loss": %d}\n'
    lines = [again % pair for pair in ((1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (4, 2))]
    put(tmp_path, "progress.jsonl", "".join(lines))
    assert values(series(tmp_path), "loss") == [1, 1, 2, 2, 2]


def test_a_tag_of_two_folders_of_events_is_two_numbers(tmp_path: Path) -> None:
    for folder in ("tb/train", "tb/val"):
        name = "events.out.tfevents.1.x"
        put(tmp_path, f"{folder}/{name}", REAL / "torch/events.out.tfevents.torch")
    found = series(tmp_path)
    assert {"train/acc", "val/acc"} <= set(found) and "acc" not in found
    assert math.isnan(values(found, "train/loss/val")[-1])
    assert found["train/acc"][1][:2] == (1.0, 1795000010.0)


def test_a_config_has_no_curve_and_one_number_alone_is_none(tmp_path: Path) -> None:
    put(tmp_path, "hparams.json", '[{"step": 1, "lr": 1}, {"step": 2, "lr": 2}]')
    put(tmp_path, "all_results.json", REAL / "trainer/all_results.json")
    assert series(tmp_path) == {}


def test_a_curve_has_at_most_2000_points_with_the_first_and_the_last(tmp_path: Path) -> None:
    lines = (f'{{"step": {n}, "loss": {n}}}\n' for n in range(1, 12_346))
    put(tmp_path, "progress.jsonl", "".join(lines))
    found = values(series(tmp_path), "loss")
    assert len(found) == MOST_POINTS and (found[0], found[-1]) == (1, 12_345)


@pytest.mark.parametrize("count", [0, 1, 2, 1999, 2000, 2001, 4001, 100_000])
def test_thinning_keeps_the_order_and_both_ends(count: int) -> None:
    found = thin(range(count))
    assert len(found) == min(count, MOST_POINTS) and found == sorted(set(found))
    assert not count or (found[0], found[-1]) == (0, count - 1)


def test_damage_in_one_file_costs_no_other(tmp_path: Path) -> None:
    put(tmp_path, "metrics.csv", REAL / "lightning/metrics.csv")
    put(tmp_path, "events.out.tfevents.1", "nonsense" * 100)
    put(tmp_path, "results.json", '{"a": ')
    put(tmp_path, "c.log", "a" * 64 + "!\n")
    found = series(tmp_path, Metric("endless", "log", "((?:a+)+)$"))
    assert set(found) == {"train_loss", "val_loss"}


def test_its_sources_are_what_it_reads(tmp_path: Path) -> None:
    for name in ("c.log", "metrics.csv", "config.json", "best.pth", "s.txt"):
        put(tmp_path, name, "x")
    cell = pulled(tmp_path, Metric("a", "log", "(x)"), Metric("b", "csv", "s.txt", key="y"))
    assert {file.path for file in cell_series.sources(cell)} == {"c.log", "metrics.csv", "s.txt"}
