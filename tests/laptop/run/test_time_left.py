from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from boxcar.laptop.run import condition
from boxcar.laptop.run.view import CellView, Condition, QueueView, RunView
from boxcar.shared import state
from boxcar.shared.files.heartbeat import Seen
from boxcar.shared.state import CellRecord

AT = "2026-11-20T10:00:00.000Z"
OVER = [
    state.Succeeded(1, AT),
    state.Synced(1, AT, "ab" * 32),
    state.Verified(1, AT, "ab" * 32),
    state.Failed(1, AT, "script_error", "", "ab" * 32, is_final=True),
]
RUNNING = state.Running(1, AT)


def a_cell(name: str, now: state.CellState, epochs: int | None = 10, **more: Any) -> CellView:
    return CellView(name, "q", "box", "c", "t", epochs, 0, CellRecord(now), **more)


def a_view(*cells: CellView) -> RunView:
    return RunView("r", AT, (QueueView("q", "box"),), cells)


@pytest.mark.parametrize("epochs", [10, None])
@pytest.mark.parametrize("now", OVER)
def test_of_a_cell_that_has_ended_nothing_is_left(now: state.CellState, epochs: int | None) -> None:
    view = a_view(a_cell("a", now, epochs))
    assert condition.cells_left_s(view) == {"a": 0.0}
    beside = a_view(*view.cells, a_cell("b", RUNNING, seconds=10.0, progress={"epoch": 4}))
    assert condition.cells_left_s(beside) == {"a": 0.0, "b": 15.0}


def test_a_cell_that_waits_is_judged_by_the_verified_ones_of_its_task() -> None:
    done = [a_cell(f"d{at}", OVER[2], seconds=10.0 * at) for at in (1, 2, 9)]
    left_s = condition.cells_left_s(a_view(*done, a_cell("w", state.Queued())))
    assert left_s["w"] == 20.0


@pytest.mark.parametrize(
    ("seen", "left_s"),
    [
        (Seen(epoch=2, epochs=10, left_s=70.0), 70.0),
        (Seen(epoch=2), 40.0),
        (Seen(epoch=1, epochs=10), None),
        (Seen(epoch=0), None),
        (Seen(epoch=12), None),
    ],
)
def test_a_first_cell_is_judged_by_what_its_log_seems_to_say(
    seen: Seen, left_s: float | None
) -> None:
    cell = a_cell("a", RUNNING, seconds=10.0, seen=seen)
    assert condition.cells_left_s(a_view(cell)) == {"a": left_s}
    no_epochs = a_cell("a", RUNNING, None, seconds=10.0, seen=seen)
    assert condition.cells_left_s(a_view(no_epochs)) == {"a": seen.left_s}
    late = a_cell("a", RUNNING, seconds=30.0, seen=seen)
    found = condition.cells_left_s(a_view(late, a_cell("d", OVER[2], seconds=20.0)))
    assert found["a"] == (3 * left_s if left_s == 40.0 else left_s or 0.0)
    reports = a_cell("a", RUNNING, seconds=10.0, seen=seen, progress={"epoch": 5})
    assert condition.cells_left_s(a_view(reports)) == {"a": 10.0}


def test_what_nobody_can_know_stays_unknown_also_of_its_queue() -> None:
    view = a_view(a_cell("a", OVER[2]), a_cell("w", state.Queued(), None))
    left_s = condition.cells_left_s(view)
    assert left_s == {"a": 0.0, "w": None}
    assert condition.queues_left_s(view, left_s) == {"q": None}


def test_a_dropped_cell_and_a_damaged_one_have_nothing_left() -> None:
    view = a_view(
        a_cell("a", state.Queued(), None, is_dropped=True),
        a_cell("b", OVER[2], damage="its manifest is gone"),
    )
    assert condition.cells_left_s(view) == {"a": 0.0, "b": 0.0}


def test_the_members_of_a_pool_that_may_run_share_what_none_has_claimed() -> None:
    ends = Condition("done", "")
    lives = [QueueView("q@a", "a", is_alive=True), QueueView("q@b", "b", is_alive=True)]
    lives.append(QueueView("q@c", "c", condition=ends))
    cells = [a_cell("own", RUNNING), a_cell("one", state.Queued()), a_cell("two", state.Queued())]
    cells[0] = replace(cells[0], queue="q@a")
    view = RunView("r", AT, tuple(lives), tuple(cells))
    left_s = condition.queues_left_s(view, {"own": 50.0, "one": 10.0, "two": 30.0})
    assert left_s == {"q@a": 70.0, "q@b": 20.0, "q@c": 0.0}
    assert [queue.name for queue in view.queues_of(cells[1])] == ["q@a", "q@b", "q@c"]
