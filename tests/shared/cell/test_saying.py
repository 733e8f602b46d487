from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from plans import make_plan

from boxcar.shared.cell import said
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.own_words import Own
from boxcar.shared.files.plan import Box, Cell

PLAN = make_plan()
LINE = CellLine(0, 1, "a", "a.yaml", "t", 3, Own(env={"A": "1"}), ("lr=1", "seed=2"))
SHA = "a" * 64


def of(**changes: Any) -> str:
    return said.saying_of(PLAN, replace(LINE, **changes), SHA)


@pytest.mark.parametrize(
    "changes",
    [
        {"cfg": "b.yaml"},
        {"task": "u"},
        {"epochs": 4},
        {"overrides": ("lr=2", "seed=2")},
        {"overrides": ("seed=2", "lr=1")},
        {"overrides": ("lr=1 seed=2",)},
        {"overrides": ()},
        {"own": Own(env={"A": "2"})},
        {"own": Own()},
    ],
)
def test_another_line_says_something_else(changes: dict[str, Any]) -> None:
    assert of(**changes) != of()


@pytest.mark.parametrize(
    "changes",
    [
        {"index": 7, "number": 9},
        {"own": Own(env={"A": "1"}, nproc=8)},
        {"own": Own(env={"A": "1"}, time_s=60)},
        {"own": Own(env={"A": "1"}, after=("x",))},
    ],
)
def test_place_ranks_time_and_order_are_not_what_it_says(changes: dict[str, Any]) -> None:
    assert of(**changes) == of()


def test_the_order_of_variables_does_not_count() -> None:
    assert of(own=Own(env={"A": "1", "B": "2"})) == of(own=Own(env={"B": "2", "A": "1"}))


def test_the_configs_bytes_count() -> None:
    assert said.saying_of(PLAN, LINE, "b" * 64) != of() != said.saying_of(PLAN, LINE, None)


def test_box_command_and_code_do_not_count() -> None:
    other = make_plan(boxes=(Box("z", "/z", "/z"),), command=("other.py",), env={"X": "1"})
    assert said.saying_of(other, LINE, SHA) == of()


def test_epochs_by_the_jobs_default_are_those_epochs() -> None:
    bare = replace(LINE, epochs=None)
    assert said.saying_of(make_plan(epochs=3), bare, SHA) == of()
    assert said.saying_of(make_plan(epochs=4), bare, SHA) != of()


def test_a_cell_of_a_plan_says_what_its_line_says() -> None:
    cell = Cell("a", "a.yaml", "t", 3, "queue_1", 0, 8, LINE.own, LINE.overrides)
    assert said.saying_of(PLAN, cell, SHA) == of()


def test_what_is_not_known_differs_from_nothing() -> None:
    assert said.sayings_differ("a", "b")
    assert not any(
        said.sayings_differ(*pair) for pair in (("a", "a"), ("a", None), (None, "b"), (None, None))
    )
