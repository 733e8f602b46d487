"""What follows of an attempt's end, for the cell, the queue and the agent."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from stepping import see_through
from waiting import LIMIT_S

from boxcar.shared import state
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk import lock
from boxcar.shared.errors import DamagedError
from boxcar.shared.news.wanted import IDLE_FOR_S
from boxcar.shared.process import end_reason, exit_codes
from boxcar.shared.triage.evidence import OF_BOX_OR_CODE, Course
from onbox.agent import ending
from onbox.agent.beat import LONGEST_GAP_S, IdleGpus
from onbox.agent.ending import Ending
from onbox.agent.outcome import Outcome, StopQueue
from onbox.agent.runner import tell_of_end
from onbox.judging.verdict import Action, Verdict
from onbox.machine.credentials import BoxSecrets

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
            pausing=self.pausing,
            room=room,
            beat=SimpleNamespace(keep_last_minutes=lambda cell: None),
        )
        loop.place, loop.reporter, loop.orders = (
            SimpleNamespace(release=Path("r1"), queue="q1"),
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

    def pausing(self, wait_s: float) -> Iterator[None]:
        self.did.append(("waits", wait_s))
        yield

    def conclude(self, verdict: Verdict, seconds: float = 1.0) -> bool:
        done = SimpleNamespace(seconds=seconds, release="r1", rc=1)
        return see_through(self.outcome.conclude(line("a"), 1, cast(Any, done), verdict, ()))

    @property
    def types(self) -> list[str]:
        return [what for what, _ in self.did]


def line(name: str) -> CellLine:
    return CellLine(0, 1, name, f"{name}.json", "count", 3)


def failed(
    course: Course = OF_ALL, action: Action = Action.FAIL, reason: str = "it broke"
) -> Verdict:
    return Verdict(action, "CUDA", reason, course=course)


def test_a_success_is_said_and_then_handed_over():
    stand = Stand()
    assert stand.conclude(Verdict(Action.SUCCEED))
    assert stand.did == [
        ("cell.succeeded", {"cell": "a", "attempt": 1, "seconds": 1.0}),
        ("hands over", "line of a"),
    ]


@pytest.mark.parametrize(
    ("retries", "types"), [(0, ["cell.retried", "waits"]), (2, ["cell.failed", "saves log"])]
)
def test_a_cell_is_tried_again_as_often_as_its_failure_has_waits(retries, types):
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
def test_what_a_wait_holds_up(wait_s, course, is_for_one_cell, what):
    stand = Stand(is_for_one_cell=is_for_one_cell)
    verdict = Verdict(Action.RETRY, "CUDA", "it broke", waits_s=(wait_s,), course=course)
    assert stand.conclude(verdict) == (what == "puts off")
    assert stand.did[-1] == (what, wait_s)


def test_told_to_stop_a_cell_that_did_not_succeed_is_preempted_and_not_failed():
    stand = Stand()
    stand.orders.is_to_stop = True
    assert stand.conclude(failed())
    assert stand.types == ["cell.preempted"]


def test_two_in_a_row_that_fail_alike_and_at_once_stop_the_queue():
    stand = Stand()
    assert stand.conclude(failed())
    with pytest.raises(
        StopQueue, match="two cells in a row failed in the same way within a minute: it broke"
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
def test_what_lies_between_two_that_fail_alike_lets_the_queue_go_on(between):
    stand = Stand()
    for verdict in (failed(), between, failed()):
        assert stand.conclude(verdict)


def test_a_box_that_is_broken_takes_no_more_cells_and_names_those_that_wait():
    with pytest.raises(StopQueue, match="2 cells for another box: a, b") as stopped:
        Stand().conclude(failed(Course.OTHER_BOX))
    assert stopped.value.exit_code == exit_codes.STOP_QUEUE


def test_a_disk_that_is_full_ends_the_queue_with_an_exit_code_of_its_own():
    with pytest.raises(StopQueue) as stopped:
        Stand().conclude(failed(Course.FREE_SPACE))
    assert stopped.value.exit_code == exit_codes.NO_ROOM


def test_a_log_that_cannot_be_kept_is_said_and_costs_nothing_else():
    stand = Stand()

    def broken(act: Any) -> None:
        raise OSError(5, "Input/output error")

    stand.outcome._loop.room.through = broken  # type: ignore[method-assign, assignment]
    assert stand.conclude(failed(OF_ONE))
    assert stand.types == ["cell.failed", "warns log_not_saved"]


# Far longer than any test runs: who waits for it has not been woken.


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "a.log"
    path.touch()
    return path


def test_an_adopted_attempt_wakes_the_agent_as_its_lock_becomes_free(log):
    held, woken = lock.try_hold(log), []
    waits = tell_of_end(log, None, lambda: woken.append(lock.is_held(log)))
    assert waits.is_alive()
    os.close(held)
    waits.join(LIMIT_S)
    assert woken == [False]


def test_a_wrapper_that_is_gone_wakes_it_and_so_do_the_last_it_left_behind(log):
    with log.open("ab") as file:
        lock.try_lock(file.fileno())
        left = subprocess.Popen(["sleep", "3600"], stdout=file)
        child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=file)
    woken = queue.Queue()
    waits = tell_of_end(log, child, lambda: woken.put(lock.is_held(log)))
    assert woken.get(timeout=LIMIT_S)
    assert child.poll() == 0
    left.kill()
    left.wait()
    assert not woken.get(timeout=LIMIT_S)
    waits.join(LIMIT_S)
    assert not waits.is_alive()


def test_a_log_that_is_gone_wakes_nobody_and_leaves_the_look_to_the_loop(log):
    log.unlink()
    woken: list[int] = []
    tell_of_end(log, None, lambda: woken.append(1)).join(LIMIT_S)
    assert woken == []


# --- the queue's end


class EndingStand:
    """A queue's end: what is done, in its order."""

    def __init__(
        self,
        *states: Any,
        left_open: tuple[str, ...] = (),
        has_next: bool = False,
        is_typed: bool = False,
    ) -> None:
        self.did: list[str] = []
        self.errors: list[BaseException] = []
        self.busy = 0
        self.trouble: OSError | None = None
        self.orders = SimpleNamespace(is_to_end=False, is_to_stop=False)
        self.orders.reason, self.orders.exit_code = "a person asked", 9
        self.orders.by = end_reason.SIGNAL
        cells = {str(at): SimpleNamespace(state=one) for at, one in enumerate(states)}
        reporter = SimpleNamespace(
            say=self.say,
            flush=lambda: self.did.append("flush"),
            close=lambda flush_s: self.did.append("reporter closed"),
            state=lambda: SimpleNamespace(cells=cells),
            secrets=BoxSecrets(),
        )
        beat = SimpleNamespace(ends_all=lambda: None)
        loop = SimpleNamespace(say=self.say, tick=lambda: None, beat=beat)
        lines = SimpleNamespace(
            unfit=[],
            left_open=lambda: list(left_open),
            read=lambda: True,
            next=lambda: has_next or None,
            is_typed=is_typed,
        )
        loop.reporter, loop.orders, loop.settler = reporter, self.orders, self
        loop.place = SimpleNamespace(queue="q1")
        self.ending = Ending(cast(Any, loop), cast(Any, lines), cast(Any, self))

    def say(self, type: str, **data: Any) -> None:
        if self.trouble:
            raise self.trouble
        self.did.append(f"{type} {data.get('reason') or ''}".strip())

    # As a settler and a second home are.

    @property
    def is_busy(self) -> bool:
        self.busy -= 1
        return self.busy >= 0

    def failures(self) -> list[BaseException]:
        return self.errors

    def begin(self) -> None:
        self.did.append("settles")

    def close(self) -> None:
        self.did.append("closed")

    def hurry(self) -> None:
        self.did.append("hurries")

    def wait(self, timeout_s: float) -> None:
        self.did.append("waits")


VERIFIED = state.Verified.__new__(state.Verified)
FAILED = state.Failed.__new__(state.Failed)


@pytest.mark.parametrize(
    ("stand", "exit_code"),
    [
        pytest.param(EndingStand(VERIFIED), exit_codes.DONE, id="all is well"),
        pytest.param(EndingStand(VERIFIED, FAILED), exit_codes.FAILED, id="a cell failed"),
        pytest.param(
            EndingStand(VERIFIED, left_open=("line 3",)), exit_codes.FAILED, id="a line is open"
        ),
    ],
)
def test_a_queue_that_is_done_says_so_before_it_leaves(stand, exit_code):
    assert stand.ending.done() == exit_code
    assert [what.split()[0] for what in stand.did] == [
        *("queue.done", "closed", "closed", "agent.stopped", "reporter")
    ]


def test_one_that_was_to_end_is_stopped_and_not_done():
    stand = EndingStand(VERIFIED)
    stand.orders.is_to_end = True
    assert stand.ending.done() == 9
    assert "queue.stopped a person asked" in stand.did
    assert not any(what.startswith("queue.done") for what in stand.did)


@pytest.mark.parametrize(
    ("has_next", "is_typed", "exit_code"),
    [
        (True, False, exit_codes.PREEMPTED),
        (False, True, exit_codes.PREEMPTED),  # a last line without its line feed
        (False, False, exit_codes.DONE),
    ],
)
def test_a_turn_that_is_over_leaves_the_next_cell_and_without_one_the_queue_is_done(
    has_next, is_typed, exit_code
):
    stand = EndingStand(VERIFIED, has_next=has_next, is_typed=is_typed)
    assert stand.ending.turn_over() == exit_code
    assert any(what.startswith("queue.done") for what in stand.did) != (has_next or is_typed)


def test_what_was_handed_over_is_settled_though_nothing_more_can_be_said():
    stand = EndingStand()
    stand.trouble = OSError(5, "Input/output error")
    assert stand.ending.stopped("the tier is gone", 7) == 7
    assert stand.did == ["closed"]


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (DamagedError("a.json: is damaged"), exit_codes.STOP_QUEUE),
        (OSError(28, "No space left on device"), exit_codes.NO_ROOM),
    ],
)
def test_a_result_that_cannot_be_settled_stops_the_queue(error, exit_code):
    stand = EndingStand()
    stand.busy, stand.errors = 1, [error]
    with pytest.raises(StopQueue, match="a result could not be published") as stopped:
        stand.ending.wait_for_settling()
    assert stopped.value.exit_code == exit_code


def test_at_a_stop_what_is_still_settled_is_hurried(monkeypatch):
    monkeypatch.setattr(ending, "TICK_S", 0.0)
    stand = EndingStand()
    stand.busy = 1
    stand.orders.is_to_stop = True
    stand.ending.wait_for_settling()
    assert stand.did == ["hurries", "waits"]


# --- GPUs that idle


IDLE: list[Any] = [{"utilization_percent": 2}, {"utilization_percent": 4}, {"problem": "?"}]
BUSY: list[Any] = [{"utilization_percent": 0}, {"utilization_percent": 5}]


def told(
    gpus: IdleGpus, seconds: float, rows: list[Any] = IDLE, cell: str | None = "a", attempt: int = 1
) -> list[dict[str, Any]]:
    """What is said while that goes on for so long, a look every minute."""
    found = []
    start = gpus._looked_s
    for minute in range(1, int(seconds // 60) + 1):
        found.append(gpus.look(cell, attempt, rows, start + 60.0 * minute))
    return [one for one in found if one]


def test_an_attempt_whose_gpus_idle_is_told_of_once_with_the_busiest_of_them():
    [said] = told(IdleGpus(), 4 * IDLE_FOR_S)
    assert (said["cell"], said["attempt"], said["percent"]) == ("a", 1, 4)
    assert said["seconds"] == IDLE_FOR_S
    assert said["text"] == "every GPU has been under 5 % for 20 min while a runs"


@pytest.mark.parametrize("rows", [BUSY, [], [{"problem": "no driver"}]])
def test_a_busy_gpu_and_a_box_that_knows_none_are_no_news(rows):
    assert told(IdleGpus(), 4 * IDLE_FOR_S, rows) == []


def test_without_a_cell_nobody_waits_for_a_gpu():
    assert told(IdleGpus(), 4 * IDLE_FOR_S, cell=None) == []


def test_a_moment_of_work_begins_the_time_anew():
    gpus = IdleGpus()
    assert told(gpus, IDLE_FOR_S - 60) == []
    assert told(gpus, 60, BUSY) == []
    assert told(gpus, IDLE_FOR_S) == []
    assert len(told(gpus, 120)) == 1


def test_the_next_attempt_and_the_next_cell_are_told_of_by_themselves():
    gpus = IdleGpus()
    assert len(told(gpus, 2 * IDLE_FOR_S)) == 1
    assert len(told(gpus, 2 * IDLE_FOR_S, attempt=2)) == 1
    assert len(told(gpus, 2 * IDLE_FOR_S, cell="b")) == 1


def test_a_box_that_was_suspended_was_not_idle_meanwhile():
    gpus = IdleGpus()
    assert gpus.look("a", 1, IDLE, 0.0) is None
    assert gpus.look("a", 1, IDLE, LONGEST_GAP_S + IDLE_FOR_S) is None
