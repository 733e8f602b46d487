from __future__ import annotations

from typing import Any

from box_facts import A100, facts_of, good
from plans import make_plan

from boxcar.laptop.fitness.memory_of_cells import judge_memory_of_cells
from boxcar.laptop.fitness.rules import Told
from boxcar.laptop.fitness.space import Measured
from boxcar.laptop.project.cells_at_once import say_cells_at_once
from boxcar.laptop.project.resources import Resources
from boxcar.shared.cell.own_words import Own
from boxcar.shared.files.plan import Cell

GB = 10**9


def rows(
    gpus: int, *, memory: float, shm: float = 0, plan: dict[str, Any], **facts: Any
) -> list[tuple[str, str, str, str]]:
    box = good() | {"gpus": [A100] * gpus, "memory_limit_bytes": 90 * GB, "shm_size_bytes": GB}
    one = Measured(1, 1, int(memory * GB), int(shm * GB))
    told = {"a": Told(facts_of(box | facts))}
    found = judge_memory_of_cells(told, make_plan(**plan), one)
    return [(row.what, row.verdict, str(row.found), str(row.reason)) for row in found]


def test_a_box_whose_memory_does_not_hold_all_cells_is_warned_of_with_what_would_fit():
    [(what, verdict, found, why)] = rows(8, memory=12, plan={"gpus_per_cell": 1})
    assert (what, verdict, found) == ("memory of cells", "warn", "8 x 12.0 GB of 90.0 GB")
    assert "8 cells side by side need 8 x 12.0 GB of RAM" in why
    assert why.endswith("write slots: 7 in job.yaml, or rent a larger box")


def test_shared_memory_is_judged_by_itself():
    found = rows(4, memory=1, shm=0.5, plan={"gpus_per_cell": 1})
    assert [(what, verdict) for what, verdict, *_ in found] == [
        ("memory of cells", "ok"),
        ("/dev/shm of cells", "warn"),
    ]


def test_one_cell_that_fits_and_what_nobody_measured_say_nothing():
    assert rows(1, memory=10, plan={}) == []
    assert rows(8, memory=0, plan={"gpus_per_cell": 1}) == []


def test_one_cell_that_does_not_fit_is_said_too():
    [(_what, verdict, _found, why)] = rows(1, memory=100, plan={})
    assert verdict == "warn"
    assert "slots" not in why


def said(plan: dict[str, Any], gpus: str = "") -> list[str]:
    wishes = Resources.model_validate({"gpu": {"count": gpus}} if gpus else {})
    return [str(one) for one in say_cells_at_once(make_plan(**plan), wishes)]


def test_plan_says_how_many_run_at_once_and_what_is_never_used():
    assert said({"gpus_per_cell": 3}, "8") == ["2 on a box with 8 GPUs; 2 GPUs of 8 are never used"]
    assert said({"gpus_per_cell": 1}) == [
        "as many as a box has GPUs for, 1 each; audit says how many"
    ]
    assert said({"slots": 2}) == ["2 on each box, which share its GPUs and their memory"]
    assert said({}) == []


def test_gpus_that_the_jobs_environment_names_are_the_ones_that_are_shared_out():
    first, second = said({"gpus_per_cell": 1, "job_env": {"CUDA_VISIBLE_DEVICES": "2,5"}})
    assert "names (2,5), and no others" in first
    assert second == "2 on a box with 2 GPUs"


def test_lines_that_ask_for_more_gpus_than_a_box_has_are_named():
    cells = tuple(
        Cell(name, "-", "t", 1, "q1", at, None, Own(gpus=gpus))
        for at, (name, gpus) in enumerate([("fits", 8), ("large", 9)])
    )
    _first, second = said({"gpus_per_cell": 1, "cells": cells}, "8")
    assert second.startswith("large needs more GPUs than that, and would fail: 8 at most")
