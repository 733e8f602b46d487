"""Files that libraries wrote (tests/data/numbers/README.md), and such as are no results."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.metrics import result_files
from boxcar.shared.metrics.records import Point

REAL = Path(__file__).parents[2] / "data" / "numbers"


def of_real(path: str) -> dict[str, list[Point]]:
    with (REAL / path).open("rb") as file:
        return result_files.series_of_file(path, file)


def of(path: str, data: Any) -> dict[str, list[Point]]:
    text = data if isinstance(data, str) else json.dumps(data)
    return result_files.series_of_file(path, io.BytesIO(text.encode()))


@pytest.mark.parametrize(
    ("path", "key", "count", "first", "last"),
    [
        ("lightning/metrics.csv", "val_loss", 3, (3.0, 0.44268572330474854), 0.020161621272563934),
        ("lightning/metrics.csv", "train_loss", 6, (1.0, 1.9512075185775757), 0.047239482402801514),
        ("trainer/trainer_state.json", "loss", 6, (2.0, 3.9499423503875732), 1.4222474098205566),
        (
            "trainer/trainer_state.json",
            "eval_loss",
            3,
            (4.0, 3.49422025680542),
            1.0815927982330322,
        ),
        ("sb3/progress.csv", "rollout/ep_rew_mean", 4, (64.0, 25.0), 22.272727272727273),
        ("sb3/progress.json", "rollout/ep_rew_mean", 4, (64.0, 25.0), 22.272727272727273),
        ("sb3/train.monitor.csv", "r", 11, (None, 25.0), 12.0),
        ("ray/result.json", "loss", 3, (1.0, 1.0), 1 / 3),
        ("ray/progress.csv", "acc", 3, (1.0, 0.0), 0.2),
        ("sb3/events.out.tfevents.sb3", "rollout/ep_rew_mean", 4, (64.0, 25.0), 22.272727966308594),
        (
            "tensorboardx/events.out.tfevents.tensorboardx",
            "loss",
            3,
            (0.0, 0.5),
            0.30000001192092896,
        ),
    ],
)
def test_each_library_has_its_whole_series(
    path: str, key: str, count: int, first: tuple[float | None, float], last: float
) -> None:
    found = of_real(path)[key]
    assert len(found) == count
    assert (found[0][0], found[0][2]) == first and found[-1][2] == last


def test_rays_times_are_the_trainings() -> None:
    assert of_real("ray/progress.csv")["loss"][0][1] == 1795842187.0


def test_a_config_is_never_one_whatever_it_holds() -> None:
    assert of_real("ray/params.json") == {}
    rows = '{"step": 1, "lr": 0.1}\n{"step": 2, "lr": 0.1}\n'
    for name in ("hparams.jsonl", "eval_config.json", "results_args.json", "params.csv"):
        assert of(name, rows) == {}


def test_a_document_is_one_by_its_name_and_rows_by_what_counts_them() -> None:
    document = {"epoch": 3, "loss": 0.5}
    assert of("settings_of_run.json", document) == of("m.json", document) == {}
    assert of("metrics.json", document)["loss"] == [(3.0, None, 0.5)]
    assert of("m.json", {"step": 7, "loss": 0.5})["loss"] == [(7.0, None, 0.5)]
    assert of("scheduler_config.json", {"step": 7, "loss": 0.5}) == {}
    rows = '{"epoch": 1, "loss": 0.5}\n{"epoch": 2, "loss": 0.25}\n'
    assert of("scalars.json", rows)["loss"] == [(1.0, None, 0.5), (2.0, None, 0.25)]
    predictions = '{"id": 1, "score": 0.5}\n{"id": 2, "score": 0.25}\n'
    assert of("predictions.jsonl", predictions) == of("data.csv", "x,y\n1,2\n3,4\n") == {}


def test_keras_history_by_columns_has_a_row_for_each_epoch() -> None:
    found = of("history.json", {"loss": [0.5, 0.25], "acc": [0.1, 0.2]})
    assert [value for _, _, value in found["loss"]] == [0.5, 0.25]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("metrics.json", '{"loss": 0.'),
        ("metrics.json", "[" * 100_000),
        ("metrics.csv", "a,b\n" + '"' + "x" * 200_000),
        ("results.json", "5"),
        ("metrics.json", "\x00\xff"),
        ("metrics.jsonl", '{"loss"'),
    ],
)
def test_what_is_damaged_has_no_series(path: str, text: str) -> None:
    assert of(path, text) == {}
