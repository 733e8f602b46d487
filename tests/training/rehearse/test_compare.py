from __future__ import annotations

from typing import Any

import pytest
import torch

from boxcar.training.rehearse.compare import (
    Difference,
    compare,
    is_of_one_run,
    is_rng,
    without_unseeded,
)

TOLERANCE = 1e-6


def only(whole: Any, killed: Any) -> Difference:
    (difference,) = compare(whole, killed, TOLERANCE).differences
    return difference


def moved(tensor: torch.Tensor, by: float) -> torch.Tensor:
    other = tensor.clone()
    other.view(-1)[0] += by
    return other


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([1.0, float("nan"), -0.0]),
        torch.tensor(3),
        torch.zeros(0),
        torch.tensor([True, False]),
        torch.randn(3, 2).bfloat16(),
        torch.randn(4, 2).t(),
        torch.tensor([[0.0, 1.0]]).to_sparse(),
        float("nan"),
        "text",
        None,
        {1: [2, (3.0,)]},
    ],
)
def test_what_has_the_same_bits_is_equal(value: Any) -> None:
    other = value.clone() if isinstance(value, torch.Tensor) else value
    assert compare({"x": value}, {"x": other}, 0.0).differences == ()


@pytest.mark.parametrize(
    ("whole", "killed"),
    [
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.zeros(2), torch.zeros(3)),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(2), [0.0, 0.0]),
        (torch.tensor([1]), torch.tensor([2])),
        (1, 1.0),
        (1, True),
        ("a", "b"),
        (0.0, float("nan")),
        ({}, None),
    ],
)
def test_any_other_type_shape_or_bit_is_a_difference(whole: Any, killed: Any) -> None:
    assert only({"x": whole}, {"x": killed}).path.startswith("x")


def test_a_value_that_only_one_run_has_is_a_difference() -> None:
    assert only({"ema": {"w": 1}}, {"ema": {}}).killed == "(not there)"
    assert only({}, {"ema": 1}).whole == "(not there)"


def test_fractions_may_be_off_by_the_tolerance_of_their_largest() -> None:
    weights = torch.tensor([1e-9, 100.0])
    near = only({"model": weights}, {"model": moved(weights, 5e-5)})
    assert near.is_within and near.relative == pytest.approx(5e-7, rel=1e-2)
    assert not only({"model": weights}, {"model": moved(weights, 1e-3)}).is_within
    assert only({"loss": 1.0}, {"loss": 1.0 + 1e-9}).is_within
    assert not only({"loss": 1.0}, {"loss": 1.001}).is_within


def test_nan_on_one_side_is_within_no_tolerance() -> None:
    assert not only({"w": torch.ones(2)}, {"w": torch.tensor([1.0, float("nan")])}).is_within


@pytest.mark.parametrize(
    ("whole", "killed"),
    [
        ({"rng": torch.tensor([1.0])}, {"rng": torch.tensor([1.0 + 1e-7])}),
        ({"step": 10_000_000}, {"step": 10_000_001}),
        (
            {"optimizer": {"state": {0: {"step": torch.tensor(1e7)}}}},
            {"optimizer": {"state": {0: {"step": torch.tensor(1e7 + 1)}}}},
        ),
    ],
)
def test_rng_and_counters_must_be_exact(whole: Any, killed: Any) -> None:
    difference = only(whole, killed)
    assert not difference.is_within and difference.relative is None


def test_clock_readings_are_listed_and_not_judged() -> None:
    compared = compare({"seconds": 1.5, "x": 1}, {"seconds": 1.6, "x": 1}, TOLERANCE)
    assert (compared.of_one_run, compared.differences, compared.values) == (("seconds",), (), 2)
    assert only({"time": torch.ones(1)}, {"time": torch.zeros(1)}).kind == "time"


def test_it_says_of_which_part_a_difference_is_and_how_far_a_counter_is_behind() -> None:
    difference = only({"scheduler": {"last_epoch": 24}}, {"scheduler": {"last_epoch": 12}})
    assert (difference.kind, difference.gap) == ("scheduler", -12)


@pytest.mark.parametrize("path", ["rng.0", "rngCuda", "numpy.random.keys", "loader.generator"])
def test_a_random_state_is_told_by_a_word_on_the_way_to_it(path: str) -> None:
    assert is_rng(path) and not is_rng(path.replace("r", "w"))


def test_an_unseeded_generator_that_was_carried_over_is_not_judged() -> None:
    whole, killed = {"rng": {"a": [1], "b": [5]}}, {"rng": {"a": [2], "b": [6]}}
    at_kill = {"rng": {"a": [2], "b": [4]}}
    compared = without_unseeded(compare(whole, killed, 0.0), at_kill, killed)
    assert [item.path for item in compared.differences] == ["rng.b.0"]
    assert compared.of_one_run == ("rng.a.0",)


def test_a_file_that_one_run_lacks_differs_as_a_whole() -> None:
    difference = only({"model": 1}, "(not there)")
    assert (difference.path, difference.whole) == ("(the whole)", "dict of 1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seconds", 1.5),
        ("started_at", "2026"),
        ("at", "2026"),
        ("wallTime", 1.5),
        ("running_s", 1.5),
        ("steps_per_sec", 1.5),
        ("starts", 2),
        ("id", "9f86d081"),
        ("run_id", "9f86d081"),
    ],
)
def test_clocks_names_and_counts_of_starts_are_each_runs_own(name: str, value: object) -> None:
    assert is_of_one_run(("history", name), value)


@pytest.mark.parametrize(
    "name", ["time_step", "time_embedding", "attention", "batch", "state", "loss", "class_id"]
)
def test_names_that_only_look_like_it_are_compared(name: str) -> None:
    assert not is_of_one_run((name,), 7)
