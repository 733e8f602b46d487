from __future__ import annotations

import pytest

from boxcar.laptop.common import yaml_models
from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.project.metric_values import Metrics, cutting_pattern
from boxcar.shared.errors import InputError
from boxcar.shared.files import plan


class Asked(Model):
    metrics: Metrics


def planned(text: str) -> list[plan.Metric]:
    asked = yaml_models.parse(f"metrics: {{{text}}}".encode(), "job.yaml", Asked)
    return [metric.planned(name) for name, metric in asked.metrics.items()]


def test_each_source_comes_into_the_plan_in_the_order_of_the_file() -> None:
    assert planned(
        'val/loss: {log: "val loss ([0-9.]+)", best: min}, '
        "top1: {csv: a/summary.csv, column: eval_top1, best: max}, "
        "dice: {json: metrics.json, key: test.dice}"
    ) == [
        plan.Metric("val/loss", "log", "val loss ([0-9.]+)", best="min"),
        plan.Metric("top1", "csv", "a/summary.csv", key="eval_top1", best="max"),
        plan.Metric("dice", "json", "metrics.json", key="test.dice"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('a: {log: "loss ("}', "not a regular expression"),
        ('a: {log: "loss"}', "has 0 groups, expected one"),
        ('a: {log: "(a)(b)"}', "has 2 groups, expected one"),
        ("a: {}", "expected one of log, csv and json, found none of them"),
        ('a: {log: "(x)", csv: b.csv, column: c}', "found log and csv"),
        ("a: {csv: b.csv}", "needs the column"),
        ("a: {json: b.json}", "needs the key"),
        ('a: {log: "(x)", column: c}', "column: is for csv,"),
        ("a: {csv: b.csv, column: c, key: d}", "key: is for json,"),
        ("a: {csv: ../b.csv, column: c}", "plain relative path"),
        ("a: {csv: /b.csv, column: c}", "plain relative path"),
        ('a: {log: "(x)", best: lowest}', "expected 'min' or 'max', found 'lowest'"),
        ('a: {regex: "(x)"}', "regex"),
        ('step: {log: "(x)"}', "is the name of another column. Give"),
        ('"a b": {log: "(x)"}', "the name 'a b' may have"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(InputError) as found:
        planned(text)
    assert words in str(found.value), str(found.value)
    assert "job.yaml:1: metrics" in str(found.value) or "unknown key" in str(found.value)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("val loss ([0-9.]+)", "([0-9.]+)"),
        (r"val loss \(best ([\d.]+)\)", r"([\d.]+)"),
        (r"loss (?P<n>\d+\.\d+(?:e\+\d+)?)", r"(\d+\.\d+(?:e\+\d+)?)"),
        (r"loss ([^)]+)", None),
        (r"loss (\S+)", None),
        (r"loss ([-+.0-9e]+)", None),
        (r"epoch (\d+)/", None),
        ("loss (-?[0-9.]+(?:[eE][-+]?[0-9]+)?|nan)", None),
    ],
)
def test_an_expression_that_takes_part_of_a_number_is_named(
    expression: str, named: str | None
) -> None:
    asked = Asked.model_validate({"metrics": {"a": {"log": expression}}})
    found = list(cutting_pattern(asked.metrics))
    assert [name for name, _ in found] == (["a"] if named else [])
    assert not named or found[0][1].startswith(f"{named} does not match all of 9.5e-05")


@pytest.mark.parametrize(
    ("expression", "is_named"),
    [
        (r"loss.*([0-9.]+)", True),
        (r"loss.+(\d+\.?\d*)", True),
        (r"loss.*?(\d+\.\d+)", False),
        (r"loss.*?([-+.\de]+)", False),
        (r"loss.* (-?\d\S*)", False),
        (r"loss\.*(\S+)", False),
    ],
)
def test_what_leaves_the_number_its_last_digit_is_named(expression: str, is_named: bool) -> None:
    asked = Asked.model_validate({"metrics": {"a": {"log": expression}}})
    found = [
        text
        for _, text in cutting_pattern(asked.metrics)
        if "leaves only the number's last digit" in text
    ]
    assert len(found) == is_named
