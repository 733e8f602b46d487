from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from boxcar.laptop.project.queues.cell_cost import lines_by_cost, longest_first, time_of_queues

COSTS = st.lists(st.integers(1, 50), min_size=1, max_size=7)
MANY = st.lists(st.floats(0.1, 1e6), max_size=60)


def named(costs: list[float]) -> dict[str, float]:
    return {f"c{number}": cost for number, cost in enumerate(costs)}


def speeds_of(speeds: list[float]) -> dict[str, float]:
    return {f"q{number}": speed for number, speed in enumerate(speeds)}


@given(MANY, st.lists(st.floats(0.1, 10), min_size=1, max_size=6))
def test_no_cell_is_lost_or_doubled(costs: list[float], speeds: list[float]) -> None:
    found = lines_by_cost(named(costs), speeds_of(speeds))
    assert list(found) == list(speeds_of(speeds))
    assert sorted(cell for cells in found.values() for cell in cells) == sorted(named(costs))


@given(COSTS, st.integers(1, 3))
def test_on_boxes_of_one_speed_it_takes_at_most_a_third_longer_than_the_best(
    costs: list[int], boxes: int
) -> None:
    amounts = named([float(cost) for cost in costs])
    found = lines_by_cost(amounts, speeds_of([1.0] * boxes))
    longest = max(sum(amounts[cell] for cell in cells) for cells in found.values())
    # Every way to spread them, looked at.
    best = min(
        max(
            sum(cost for cost, at in zip(costs, ways, strict=True) if at == box)
            for box in range(boxes)
        )
        for ways in itertools.product(range(boxes), repeat=len(costs))
    )
    assert longest <= (4 / 3 - 1 / (3 * boxes)) * best + 1e-9


@given(COSTS, st.permutations(range(7)))
def test_the_order_of_the_cells_changes_nothing(costs: list[int], order: list[int]) -> None:
    amounts = named([float(cost) for cost in costs])
    shuffled = {f"c{n}": amounts[f"c{n}"] for n in order if f"c{n}" in amounts}
    speeds = speeds_of([1.0, 2.0])
    assert lines_by_cost(shuffled, speeds) == lines_by_cost(amounts, speeds)


def test_a_fast_box_gets_more() -> None:
    found = lines_by_cost(named([1.0] * 9), {"slow": 1.0, "fast": 2.0})
    assert (len(found["slow"]), len(found["fast"])) == (3, 6)
    assert lines_by_cost({"only": 1.0}, {"slow": 1.0, "fast": 3.0}) == {
        "slow": [],
        "fast": ["only"],
    }


def test_little_gain_leaves_the_queues_as_they_are() -> None:
    costs = {"a": 50.0, "b": 50.5, "c": 50.5, "d": 50.0}
    uneven = {"q0": ["a", "b"], "q1": ["c", "d"]}
    assert longest_first(uneven, costs, speeds_of([1.0, 1.0])) is uneven


def test_what_gains_enough_is_spread_anew() -> None:
    costs, speeds = {"a": 3.0, "b": 2.0, "c": 1.0}, speeds_of([1.0, 1.0])
    anew = longest_first({"q0": ["a", "b"], "q1": ["c"]}, costs, speeds)
    assert anew == {"q0": ["a"], "q1": ["b", "c"]}
    assert time_of_queues(anew, costs, speeds) == {"q0": 3.0, "q1": 3.0}


def test_a_fast_box_takes_less_time_for_the_same() -> None:
    assert time_of_queues({"q0": ["a"], "q1": ["a"]}, {"a": 3.0}, speeds_of([1.0, 2.0])) == {
        "q0": 3.0,
        "q1": 1.5,
    }


def test_a_queue_that_is_busy_longer_gets_less() -> None:
    costs = named([1.0] * 4)
    found = lines_by_cost(costs, {"q0": 1.0, "q1": 1.0}, {"q0": 2.5})
    assert [len(cells) for cells in found.values()] == [1, 3]
