from __future__ import annotations

from typing import Any

import pytest

from boxcar.shared.channels import answer


@pytest.mark.parametrize(
    ("limits", "tries_s", "wait_s"),
    [
        (((2, 10.0),), [], 0.0),
        (((2, 10.0),), [100.0], 0.0),
        (((2, 10.0),), [99.0, 100.0], 9.0),
        (((2, 10.0),), [90.0, 99.0, 100.0], 9.0),
        (((1, 1.0), (3, 60.0)), [98.0, 99.0, 100.0], 58.0),
        (((1, 60.0),), [5_000.0], 60.0),  # the clock was set back
        (((1, 60.0),), [39.0], 0.0),
    ],
)
def test_how_long_to_wait_for_a_rate(limits: Any, tries_s: list[float], wait_s: float) -> None:
    assert max(0.0, answer.wait_for_rate_s(limits, tries_s, 100.0)) == wait_s


@pytest.mark.parametrize(
    ("limits", "queues", "part"),
    [
        (((20, 60.0),), 1, ((20, 60.0),)),
        (((20, 60.0),), 3, ((6, 60.0),)),
        (((5, 1.0), (100, 60.0)), 10, ((1, 2.0), (10, 60.0))),
        (((1, 5.0),), 4, ((1, 20.0),)),
        (((5, 86_400.0),), 10, ((5, 86_400.0),)),
        (((20, 60.0),), 0, ((20, 60.0),)),
    ],
)
def test_queues_that_share_a_robot_take_their_part_of_its_rate(
    limits: Any, queues: int, part: Any
) -> None:
    assert answer.share_of_rate(limits, queues) == part
    for (most, window_s), (most_all, window_all_s) in zip(part, limits, strict=True):
        is_parted = window_all_s < 86_400.0
        assert not is_parted or max(1, queues) * most / window_s <= most_all / window_all_s
