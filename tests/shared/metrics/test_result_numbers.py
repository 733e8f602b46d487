from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.files.plan import Metric
from boxcar.shared.files.receipt import Finding, Number
from boxcar.shared.metrics import measure, result_files
from boxcar.shared.metrics.measure import LATE, Left
from boxcar.shared.metrics.records import Point
from boxcar.shared.metrics.result_files import of_result
from boxcar.shared.process import bounded_child


def json_file(path: str, **numbers: Any) -> Finding:
    return Finding(path, "json", facts={"numbers": numbers})


@pytest.mark.parametrize(
    "path",
    [
        "config.json",
        "checkpoint-20/unet/config.json",
        "generation_config.json",
        "preprocessor_config.json",
        "params.json",
        "best_params.json",
        "hparams.json",
        "hyperparameters.json",
        "args.json",
        "training_args.json",
        "model_index.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.json",
        "added_tokens.json",
        "model.safetensors.index.json",
    ],
)
def test_what_a_training_was_given_is_no_result(path):
    assert of_result((), [json_file(path, attention_head_dim=8, dropout=0)]) == {}


@pytest.mark.parametrize(
    "path",
    [
        *("metrics.json", "a/all_results.json", "test_results.json", "eval.json", "results-3.json"),
        *("best_scores.json", "trainer_state.json", "evaluation.json", "checkpoint-9/metrics.json"),
    ],
)
def test_what_a_training_has_left_is_one(path):
    assert of_result((), [json_file(path, loss=0.5)]) == {"loss": 0.5}


@pytest.mark.parametrize("path", ["m.json", "split.json", "run.json", "dataset_info.json"])
def test_a_document_that_no_name_calls_a_result_is_none(path):
    assert of_result((), [json_file(path, folds=5)]) == {}


def test_rows_that_are_counted_are_results_by_whatever_name():
    rows = Finding("vis_data/scalars.json", "jsonl", facts={"rows": 3, "numbers": {"loss": 0.5}})
    events = Finding("tb/events.out.tfevents.1", "bytes", facts={"numbers": {"acc": 0.75}})
    assert of_result((), [rows, events]) == {"loss": 0.5, "acc": 0.75}


def test_where_results_are_counts_first_and_what_the_job_names_before_all():
    found = of_result(
        (Number("top1", 0.75), Number("dice", None, "no key 'dice'")),
        [
            Finding("log.csv", "csv", facts={"rows": 2, "numbers": {"loss": 9, "psnr": 30}}),
            json_file("out/trainer_state.json", loss=0.25, best_metric=1),
            json_file("eval_results.json", loss=0.5, top1=0.1),
        ],
    )
    assert list(found.items()) == [
        ("top1", 0.75),
        ("dice", None),
        ("loss", 0.5),
        ("best_metric", 1),
        ("psnr", 30),
    ]


# --- the files of a result


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
        ("trainer/trainer_state.json", "eval_loss", 3, (4.0, 3.49422025680542), 1.0815927982330322),
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
def test_each_library_has_its_whole_series(path, key, count, first, last):
    found = of_real(path)[key]
    assert len(found) == count
    assert (found[0][0], found[0][2]) == first and found[-1][2] == last


def test_rays_times_are_the_trainings():
    assert of_real("ray/progress.csv")["loss"][0][1] == 1795842187.0


def test_a_config_is_never_one_whatever_it_holds():
    assert of_real("ray/params.json") == {}
    rows = '{"step": 1, "lr": 0.1}\n{"step": 2, "lr": 0.1}\n'
    for name in ("hparams.jsonl", "eval_config.json", "results_args.json", "params.csv"):
        assert of(name, rows) == {}


def test_a_document_is_one_by_its_name_and_rows_by_what_counts_them():
    document = {"epoch": 3, "loss": 0.5}
    assert of("settings_of_run.json", document) == of("m.json", document) == {}
    assert of("metrics.json", document)["loss"] == [(3.0, None, 0.5)]
    assert of("m.json", {"step": 7, "loss": 0.5})["loss"] == [(7.0, None, 0.5)]
    assert of("scheduler_config.json", {"step": 7, "loss": 0.5}) == {}
    rows = '{"epoch": 1, "loss": 0.5}\n{"epoch": 2, "loss": 0.25}\n'
    assert of("scalars.json", rows)["loss"] == [(1.0, None, 0.5), (2.0, None, 0.25)]
    predictions = '{"id": 1, "score": 0.5}\n{"id": 2, "score": 0.25}\n'
    assert of("predictions.jsonl", predictions) == of("data.csv", "x,y\n1,2\n3,4\n") == {}


def test_keras_history_by_columns_has_a_row_for_each_epoch():
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
def test_what_is_damaged_has_no_series(path, text):
    assert of(path, text) == {}


# --- numbers as box and laptop take them, in a child with limits


LOSS = Metric("loss", "log", "loss ([0-9.]+)", best="min")
TOP1 = Metric("top1", "csv", "s.csv", key="top1")
DICE = Metric("dice", "json", "deep/m.json", key="dice")
# Of a line that nearly matches, it tries more ways than there are atoms.
ENDLESS = Metric("endless", "log", "((?:a+)+)$")


@pytest.fixture
def left(tmp_path: Path) -> Left:
    (tmp_path / "a.log").write_text("loss 0.5\nloss 0.25\nloss 0.75\n" + "a" * 64 + "!\n")
    (tmp_path / "s.csv").write_text("top1\n0.5\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "m.json").write_text('{"dice": 0.125}')
    return Left(tmp_path, tmp_path / "a.log")


def test_each_number_comes_in_the_order_of_the_job_for_each_cell(left, tmp_path):
    nothing = Left(tmp_path / "none", tmp_path / "none.log")
    first, second = measure.take_numbers((TOP1, LOSS, DICE), [left, nothing])
    assert first == (Number("top1", 0.5), Number("loss", 0.25), Number("dice", 0.125))
    assert measure.of_named(second) == {"top1": None, "loss": None, "dice": None}
    assert measure.notes(second) == {
        "top1": "s.csv is not there",
        "loss": "the log is not there",
        "dice": "deep/m.json is not there",
    }


def test_an_expression_that_never_ends_costs_its_second_and_no_other_number(left):
    [numbers] = measure.take_numbers((TOP1, ENDLESS, LOSS), [left])
    assert numbers == (Number("top1", 0.5), Number("endless", None, LATE), Number("loss", 0.25))


def test_without_metrics_no_child_is_started(left, monkeypatch):
    monkeypatch.delattr(bounded_child.subprocess, "Popen")
    assert measure.take_numbers((), [left, left]) == [(), ()]


def test_what_is_no_file_or_leads_out_of_the_folder_is_not_opened(left):
    (left.folder / "s.csv").unlink()
    os.mkfifo(left.folder / "s.csv")
    (left.folder / "out.json").symlink_to("/etc/hostname")
    outside = Metric("outside", "json", "out.json", key="a")
    [numbers] = measure.take_numbers((TOP1, outside), [left])
    assert [number.value for number in numbers] == [None, None]
    assert "not a regular file" in numbers[0].note and "leads out" in numbers[1].note


def test_where_no_child_can_be_started_every_number_has_a_note(left, monkeypatch):
    monkeypatch.setattr(bounded_child.sys, "executable", "/none/python")
    [numbers] = measure.take_numbers((TOP1, LOSS), [left])
    assert [number.value for number in numbers] == [None, None]
    assert "No such file" in numbers[0].note
