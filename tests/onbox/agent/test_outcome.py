from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from boxcar.shared import state
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.process import exit_codes
from boxcar.shared.triage.evidence import OF_BOX_OR_CODE, Course
from onbox.agent.outcome import Outcome, StopQueue
from onbox.judging.verdict import Action, Verdict

OF_ALL = next(course for course in Course if course in OF_BOX_OR_CODE)
OF_ONE = next(
    course
    for course in Course
    if course not in OF_BOX_OR_CODE and course not in (Course.OTHER_BOX, Course.FREE_SPACE)
)


class Stand:
    """An outcome's surroundings: what is said, handed over and waited for, in its order."""

    def __init__(self, retries: int = 0, *, is_for_one_cell: bool = False) -> None:
        self.did: list[tuple[str, Any]] = []
        self.orders = SimpleNamespace(is_to_stop=False, is_to_end=False)
        record = state.NOTHING_YET
        reporter = SimpleNamespace(
            line_of=lambda cell: f"line of {cell}",
            warn=lambda what, text, cell: self.did.append((f"warns {what}", text)),
            record=lambda name: SimpleNamespace(retries={"CUDA": retries}, state=record),
        )
        room = SimpleNamespace(through=lambda act: self.did.append(("saves log", None)))
        loop = SimpleNamespace(
            say=lambda type, **data: self.did.append((type, data)),
            pause=lambda wait_s: self.did.append(("waits", wait_s)),
            room=room,
        )
        loop.place, loop.reporter, loop.orders = (
            SimpleNamespace(release=Path("r1")),
            reporter,
            self.orders,
        )
        loop.settler = SimpleNamespace(
            hand_over=lambda line, number: self.did.append(("hands over", line))
        )
        lines = SimpleNamespace(
            open=lambda: [line("a"), line("b")],
            put_off=lambda cell, wait_s: self.did.append(("puts off", wait_s)),
        )
        self.outcome = Outcome(cast(Any, loop), cast(Any, lines), is_for_one_cell=is_for_one_cell)

    def conclude(self, verdict: Verdict, seconds: float = 1.0) -> bool:
        done = SimpleNamespace(seconds=seconds, release="r1", rc=1)
        return self.outcome.conclude(line("a"), 1, cast(Any, done), verdict, ())

    @property
    def types(self) -> list[str]:
        return [what for what, _ in self.did]


def line(name: str) -> CellLine:
    return CellLine(0, 1, name, f"{name}.json", "count", 3)


def failed(
    course: Course = OF_ALL, action: Action = Action.FAIL, reason: str = "it broke"
) -> Verdict:
    return Verdict(action, "CUDA", reason, course=course)


def test_a_success_is_said_and_then_handed_over() -> None:
    stand = Stand()
    assert stand.conclude(Verdict(Action.SUCCEED))
    assert stand.did == [
        ("cell.succeeded", {"cell": "a", "attempt": 1, "seconds": 1.0}),
        ("hands over", "line of a"),
    ]


@pytest.mark.parametrize(
    ("retries", "types"), [(0, ["cell.retried", "waits"]), (2, ["cell.failed", "saves log"])]
)
def test_a_cell_is_tried_again_as_often_as_its_failure_has_waits(
    retries: int, types: list[str]
) -> None:
    stand = Stand(retries)
    verdict = Verdict(Action.RETRY, "CUDA", "it broke", waits_s=(5.0, 9.0), course=OF_ONE)
    assert stand.conclude(verdict) == (retries == 2)
    assert stand.types == types


@pytest.mark.parametrize(
    ("wait_s", "course", "is_for_one_cell", "what"),
    [
        pytest.param(61.0, OF_ONE, False, "puts off", id="a long one lets others go"),
        pytest.param(60.0, OF_ONE, False, "waits", id="behind a short one others would be late"),
        pytest.param(300.0, Course.FREE_SPACE, False, "waits", id="room is the box's, for all"),
        pytest.param(300.0, OF_ONE, True, "waits", id="an agent for one cell has no other"),
    ],
)
def test_what_a_wait_holds_up(
    wait_s: float, course: Course, is_for_one_cell: bool, what: str
) -> None:
    stand = Stand(is_for_one_cell=is_for_one_cell)
    verdict = Verdict(Action.RETRY, "CUDA", "it broke", waits_s=(wait_s,), course=course)
    assert stand.conclude(verdict) == (what == "puts off")
    assert stand.did[-1] == (what, wait_s)


def test_told_to_stop_a_cell_that_did_not_succeed_is_preempted_and_not_failed() -> None:
    stand = Stand()
    stand.orders.is_to_stop = True
    assert stand.conclude(failed())
    assert stand.types == ["cell.preempted"]


def test_two_in_a_row_that_fail_alike_and_at_once_stop_the_queue() -> None:
    stand = Stand()
    assert stand.conclude(failed())
    with pytest.raises(
        StopQueue, match="two cells in a row failed alike within a minute: it broke"
    ):
        stand.conclude(failed())


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(failed(OF_ONE), id="one that says nothing of the box"),
        pytest.param(failed(reason="another"), id="another failure"),
        pytest.param(Verdict(Action.SUCCEED), id="a success"),
    ],
)
def test_what_lies_between_two_that_fail_alike_lets_the_queue_go_on(between: Verdict) -> None:
    stand = Stand()
    for verdict in (failed(), between, failed()):
        assert stand.conclude(verdict)


def test_a_box_that_is_broken_takes_no_more_cells_and_names_those_that_wait() -> None:
    with pytest.raises(StopQueue, match="2 cells for another box: a, b") as stopped:
        Stand().conclude(failed(Course.OTHER_BOX))
    assert stopped.value.exit_code == exit_codes.STOP_QUEUE


def test_a_disk_that_is_full_ends_the_queue_with_an_exit_code_of_its_own() -> None:
    with pytest.raises(StopQueue) as stopped:
        Stand().conclude(failed(Course.FREE_SPACE))
    assert stopped.value.exit_code == exit_codes.NO_ROOM


def test_a_log_that_cannot_be_kept_is_said_and_costs_nothing_else() -> None:
    stand = Stand()

    def broken(act: Any) -> None:
        raise OSError(5, "Input/output error")

    stand.outcome._loop.room.through = broken  # type: ignore[method-assign, assignment]
    assert stand.conclude(failed(OF_ONE))
    assert stand.types == ["cell.failed", "warns log_not_saved"]
