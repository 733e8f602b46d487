from __future__ import annotations

from typing import Any

import pytest

from boxcar.shared.news.wanted import IDLE_FOR_S
from onbox.agent.beat import LONGEST_GAP_S, IdleGpus

IDLE: list[Any] = [{"utilization_percent": 2}, {"utilization_percent": 9}, {"problem": "?"}]
BUSY: list[Any] = [{"utilization_percent": 0}, {"utilization_percent": 10}]


def told(
    gpus: IdleGpus, seconds: float, rows: list[Any] = IDLE, cell: str | None = "a", attempt: int = 1
) -> list[dict[str, Any]]:
    """What is said while that goes on for so long, a look every minute."""
    found = []
    start = gpus._looked_s
    for minute in range(1, int(seconds // 60) + 1):
        found.append(gpus.look(cell, attempt, rows, start + 60.0 * minute))
    return [one for one in found if one]


def test_an_attempt_whose_gpus_idle_is_told_of_once_with_the_busiest_of_them() -> None:
    [said] = told(IdleGpus(), 4 * IDLE_FOR_S)
    assert (said["cell"], said["attempt"], said["percent"]) == ("a", 1, 9)
    assert said["seconds"] == IDLE_FOR_S
    assert said["text"] == "every GPU is under 10 % for 20 min while a runs"


@pytest.mark.parametrize("rows", [BUSY, [], [{"problem": "no driver"}]])
def test_a_busy_gpu_and_a_box_that_knows_none_are_no_news(rows: list[Any]) -> None:
    assert told(IdleGpus(), 4 * IDLE_FOR_S, rows) == []


def test_without_a_cell_nobody_waits_for_a_gpu() -> None:
    assert told(IdleGpus(), 4 * IDLE_FOR_S, cell=None) == []


def test_a_moment_of_work_begins_the_time_anew() -> None:
    gpus = IdleGpus()
    assert told(gpus, IDLE_FOR_S - 60) == []
    assert told(gpus, 60, BUSY) == []
    assert told(gpus, IDLE_FOR_S) == []
    assert len(told(gpus, 120)) == 1


def test_the_next_attempt_and_the_next_cell_are_told_of_by_themselves() -> None:
    gpus = IdleGpus()
    assert len(told(gpus, 2 * IDLE_FOR_S)) == 1
    assert len(told(gpus, 2 * IDLE_FOR_S, attempt=2)) == 1
    assert len(told(gpus, 2 * IDLE_FOR_S, cell="b")) == 1


def test_a_box_that_was_suspended_was_not_idle_meanwhile() -> None:
    gpus = IdleGpus()
    assert gpus.look("a", 1, IDLE, 0.0) is None
    assert gpus.look("a", 1, IDLE, LONGEST_GAP_S + IDLE_FOR_S) is None
