from __future__ import annotations

from typing import Any

import pytest
from box_facts import A100, facts_of, good
from plans import make_plan

from boxcar.laptop.fitness.gpus_of_cells import judge_gpus_of_cells
from boxcar.laptop.fitness.rules import Told
from boxcar.shared.cell.own_words import Own
from boxcar.shared.files.plan import Cell

T4 = {"name": "Tesla T4", "memory_total_bytes": 15360 * 2**20}


def rows(boxes: dict[str, list[dict[str, Any]]], **plan: Any) -> list[tuple[str, str, str, str]]:
    told = {box: Told(facts_of(good() | {"gpus": gpus})) for box, gpus in boxes.items()}
    found = judge_gpus_of_cells(told, make_plan(**plan))
    return [(row.box, row.verdict, str(row.found), str(row.reason)) for row in found]


@pytest.mark.parametrize(
    ("gpus", "plan", "row"),
    [
        pytest.param(8, {"gpus_per_cell": 1}, ("ok", "8", ""), id="all are used"),
        pytest.param(
            8, {"gpus_per_cell": 3}, ("warn", "2", "2 GPUs of 8 are never used"), id="two are not"
        ),
        pytest.param(
            2, {"gpus_per_cell": 1, "slots": 1}, ("warn", "1", "1 GPU of 2 is never used"),
            id="slots are fewer",
        ),
        pytest.param(
            2, {"gpus_per_cell": 4}, ("refuse", "0", "gpus_per_cell is 4, and this box has 2"),
            id="no cell fits",
        ),
    ],
)  # fmt: skip
def test_how_many_cells_run_at_once_is_said(gpus, plan, row):
    assert rows({"a": [A100] * gpus}, **plan) == [("a", *row)]


def test_each_slice_of_a_divided_card_is_a_gpu_for_a_cell_and_a_process_sees_one():
    divided = [A100 | {"mig": [f"MIG-{n}" for n in range(7)]}, A100 | {"mig": ["MIG-7"]}]
    assert rows({"a": divided}, gpus_per_cell=1) == [("a", "ok", "8", "")]
    [(_box, verdict, found, why)] = rows({"a": divided}, gpus_per_cell=2)
    assert (verdict, found) == ("warn", "4") and "only one slice" in why


def test_boxes_with_other_gpus_are_named():
    [(box, verdict, found, _why)] = rows({"a": [A100], "b": [T4, T4]})
    assert (box, verdict) == ("all", "warn")
    assert "2 x Tesla T4" in found
    assert rows({"a": [A100], "b": [A100]}) == []
    assert rows({"a": [A100], "b": []}) == []


def test_a_box_of_a_pool_that_no_line_fits_is_refused():
    cells = tuple(
        Cell(name, "-", "t", 1, "all", at, None, Own(gpus=n))
        for at, (name, n) in enumerate([("x", 2), ("y", 4)])
    )
    pool = {"all@a": "a", "all@b": "b"}
    found = rows({"a": [A100] * 2, "b": [A100]}, gpus_per_cell=1, queues=pool, cells=cells)
    assert found[0][:3] == ("a", "ok", "2")
    assert found[1] == ("b", "refuse", "0", "each of its cells needs 2 GPUs or more, and it has 1")
