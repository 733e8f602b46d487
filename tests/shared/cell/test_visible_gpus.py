from __future__ import annotations

from typing import Any

import pytest
from plans import make_plan

from boxcar.shared.cell import visible_gpus
from boxcar.shared.files.plan import Rule


@pytest.mark.parametrize(
    ("one", "other", "are_apart"),
    [
        (("0",), ("1",), True),
        (("0", "1"), ("1", "2"), False),
        (("GPU-ab",), ("GPU-cd",), True),
        (("0",), ("GPU-cd",), False),  # may be the same one
        ((), ("0",), True),
        (None, ("0",), False),
        (("0",), None, False),
    ],
)
def test_two_are_apart_where_both_name_their_gpus_and_none_twice(
    one: Any, other: Any, are_apart: bool
) -> None:
    assert visible_gpus.are_apart(one, other) is are_apart


@pytest.mark.parametrize(
    ("own", "found"),
    [
        ({}, None),
        ({"job_env": {"CUDA_VISIBLE_DEVICES": "1"}}, ("1",)),
        ({"env": {"CUDA_VISIBLE_DEVICES": "0"}}, ("0",)),
        (
            {
                "job_env": {"CUDA_VISIBLE_DEVICES": "1"},
                "rules": (Rule("x*", env={"CUDA_VISIBLE_DEVICES": "2,3"}),),
            },
            ("1", "2", "3"),
        ),
        ({"rules": (Rule("x*", env={"CUDA_VISIBLE_DEVICES": "2"}),)}, None),
        ({"job_env": {"CUDA_VISIBLE_DEVICES": "{task}"}}, None),
    ],
)
def test_a_plan_sees_what_any_of_its_cells_may_see(own: dict[str, Any], found: Any) -> None:
    assert visible_gpus.of_plan(make_plan(**own)) == found
