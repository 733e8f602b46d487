from __future__ import annotations

import math

from boxcar.shared.metrics import records


def test_a_counter_that_begins_anew_with_each_epoch_is_no_step() -> None:
    rows = [{"epoch": e, "iter": i, "loss": 1.0} for e in (1, 2) for i in (1, 2)]
    assert [step for step, _, _ in records.points(rows, "loss")] == [None] * 4


def test_a_step_that_goes_back_with_its_epoch_was_resumed() -> None:
    rows = [{"epoch": s // 2, "step": s, "loss": 1.0} for s in (1, 2, 3, 2, 3, 4)]
    assert [step for step, _, _ in records.points(rows, "loss")] == [1, 2, 3, 2, 3, 4]


def test_what_became_null_because_it_was_not_finite_is_nan() -> None:
    rows = [{"step": 1, "loss": None, "nonfinite": ["loss"], "note": "x", "ok": True}]
    [(step, at, value)] = records.all_points(rows)["loss"]
    assert (step, at) == (1, None) and math.isnan(value)


def test_the_time_of_a_row_is_its_own_word_or_its_stamp() -> None:
    rows = [{"a": 1, "at": "1970-01-01T00:00:10.000Z"}, {"a": 1, "timestamp": 1.7e9}]
    rows += [{"a": 1, "timestamp": 12.5}, {"a": 1, "at": "yesterday"}]
    assert [at for _, at, _ in records.points(rows, "a")] == [10.0, 1.7e9, None, None]


def test_a_loss_of_0_beside_a_gradient_that_is_not_finite_is_nan() -> None:
    for text, is_nan in (("NaN", True), ("Infinity", True), ("0.5", False)):
        [row] = records.of_json(f'{{"loss": 0.0, "grad_norm": {text}}}'.encode())
        [(_, _, value)] = records.points([row], "loss")
        assert math.isnan(value) == is_nan


def test_yes_and_no_are_no_numbers() -> None:
    rows = records.of_json(b'{"ok": true, "loss": 1, "step": 1}')
    assert records.all_points(rows).keys() == {"loss", "step"}
    assert list(records.points(rows, "ok")) == []
