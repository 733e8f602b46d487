from __future__ import annotations

from typing import Any

import pytest

from boxcar.shared.files.receipt import Finding, Number
from boxcar.shared.metrics.result_files import of_result


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
def test_what_a_training_was_given_is_no_result(path: str) -> None:
    assert of_result((), [json_file(path, attention_head_dim=8, dropout=0)]) == {}


@pytest.mark.parametrize(
    "path",
    [
        *("metrics.json", "a/all_results.json", "test_results.json", "eval.json", "results-3.json"),
        *("best_scores.json", "trainer_state.json", "evaluation.json", "checkpoint-9/metrics.json"),
    ],
)
def test_what_a_training_has_left_is_one(path: str) -> None:
    assert of_result((), [json_file(path, loss=0.5)]) == {"loss": 0.5}


@pytest.mark.parametrize("path", ["m.json", "split.json", "run.json", "dataset_info.json"])
def test_a_document_that_no_name_calls_a_result_is_none(path: str) -> None:
    assert of_result((), [json_file(path, folds=5)]) == {}


def test_rows_that_are_counted_are_results_by_whatever_name() -> None:
    rows = Finding("vis_data/scalars.json", "jsonl", facts={"rows": 3, "numbers": {"loss": 0.5}})
    events = Finding("tb/events.out.tfevents.1", "bytes", facts={"numbers": {"acc": 0.75}})
    assert of_result((), [rows, events]) == {"loss": 0.5, "acc": 0.75}


def test_where_results_are_counts_first_and_what_the_job_names_before_all() -> None:
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
