from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from boxcar.training.checkpoint import cadence
from boxcar.training.checkpoint.cadence import Cadence, History, Pace

HOUR_S = 3600.0


def pace(**values: float) -> Pace:
    return Pace(**{"stall_s": 30.0, "step_s": 2.0, "steps": 1000} | values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (pace(), 402),  # 805 s in steps of 2 s, rounded down
        (pace(step_s=900.0), 1),
        (pace(steps=20), 200),  # 20 steps say little
        (pace(steps=0), cadence.FIRST_STEPS),
        (pace(stall_s=0.1, write_s=120.0), 60),  # not before the thread is done
        (pace(stall_s=0.0), 1),
        (pace(step_s=0.0), 10_000),
    ],
)
def test_the_window_in_whole_steps(measured: Pace, expected: int) -> None:
    assert cadence.steps_between(measured) == expected


@dataclass
class Saved:
    pace: Pace


def test_it_is_due_that_many_steps_after_the_last_save() -> None:
    saved = Saved(pace(step=1000))
    due = Cadence(saved)
    assert [step for step in range(1000, 1405) if due.is_due(step)] == [1402, 1403, 1404]
    saved.pace = pace(step=1402)
    assert not due.is_due(1403)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (History(), 3 * HOUR_S),
        (History(starts=1, running_s=0.0), 3 * HOUR_S),
        (History(starts=1, running_s=9 * HOUR_S), 12 * HOUR_S),
        (History(starts=4, running_s=3 * HOUR_S), 1.5 * HOUR_S),
    ],
)
def test_mtbf_is_learned_from_interruptions(history: History, expected: float) -> None:
    assert history.mtbf_s == expected


def test_the_history_survives_and_a_damaged_one_is_none(tmp_path: Path) -> None:
    assert cadence.read_history(tmp_path) == History()
    cadence.write_history(tmp_path, History(3, 12.5, {"later": 1}))
    assert cadence.read_history(tmp_path) == History(3, 12.5, {"later": 1})
    (tmp_path / cadence.HISTORY).write_text('{"format"')
    assert cadence.read_history(tmp_path) == History()


def test_a_checkpoint_carries_the_history_to_another_box() -> None:
    """The box's own counts the start that is under way, the checkpoint's does not."""
    saved = {"starts": 3, "running_s": 50.0}
    assert cadence.merged(History(1, 0.0), saved) == History(4, 50.0)
    assert cadence.merged(History(4, 60.0), saved) == History(4, 60.0)
    assert cadence.merged(History(1, 0.0), None) == History(1, 0.0)
