from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from boxcar.laptop.tryout.passes import MOST_EACH, chosen


def cells(count: int) -> list[Any]:
    return [SimpleNamespace(name=str(number)) for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, MOST_EACH])
def test_of_up_to_twelve_cells_each_is_tried(count: int) -> None:
    assert chosen(cells(count), ["the same"] * count) == cells(count)


def test_of_a_grid_the_first_the_last_and_one_of_each_kind_are_tried() -> None:
    kinds = ["a"] * 10 + ["b", "c"] * 10
    assert [cell.name for cell in chosen(cells(30), kinds)] == ["0", "10", "11", "29"]


def test_a_hundred_thousand_cells_are_chosen_from_at_once() -> None:
    many = cells(100_000)
    assert chosen(many, ["one"] * len(many)) == [many[0], many[-1]]
