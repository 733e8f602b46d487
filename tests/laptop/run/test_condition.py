"""What is the matter where a box or a trainer is out of reach. For the rest see test_view."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from run_on_disk import RELEASE

from boxcar.laptop.run.condition import (
    TRAINER_GRACE_S,
    condition_of,
    heartbeat_age_s,
    may_run,
)
from boxcar.laptop.run.view import Condition, QueueView
from boxcar.shared.files.heartbeat import Heartbeat
from boxcar.shared.state import CellRecord, Failed, Running, Session, State, Succeeded, Waiting


def at(seconds: float) -> str:
    minutes, left = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"2026-10-01T{8 + hours:02d}:{minutes:02d}:{left:06.3f}Z"


def beat(seconds: float, cell: str | None = "a") -> Heartbeat:
    phase = "running" if cell else "idle"
    return Heartbeat("q", "box-a", RELEASE, at(seconds), 7, phase, cell=cell)


def queue(**changes: Any) -> QueueView:
    """A queue whose cell runs since 08:00:00, seen by an agent that said so at 08:10:00."""
    running = CellRecord(state=Running(1, at(0)), attempts=1)
    known = State(session=Session(at(0), 7, RELEASE, "box-a", 0), cells={"a": running})
    view = QueueView(
        "q", "box-a", state=known, is_alive=True, heartbeat=beat(600), is_cell_alive=True
    )
    return replace(view, **changes)


def looked_at(view: QueueView, now: str) -> QueueView:
    return replace(view, condition=condition_of(view, now))


def with_state(cell_state: Any) -> State:
    known = queue().state
    assert known
    return replace(known, cells={"a": CellRecord(state=cell_state, attempts=1)})


def told(view: QueueView, in_s: float = 605) -> Condition:
    return condition_of(view, at(in_s))


def test_a_silent_box_is_unreachable_however_long_it_is_silent() -> None:
    silent = queue(is_alive=None, is_cell_alive=None, silent="the connection timed out")
    for in_s in (605.0, 5000.0, 40_000.0):
        found = told(silent, in_s)
        assert found.word == "unreachable"
        assert "box-a does not answer (the connection timed out)" in found.sentence
        assert may_run(looked_at(silent, at(in_s)))
    assert "its last heartbeat is 400 s old" in told(silent, 1000).sentence


def test_a_silent_box_whose_agent_another_box_still_sees_is_unreachable_and_no_more() -> None:
    seen = queue(is_cell_alive=None, silent="the connection timed out")
    assert told(seen, 5000).word == "unreachable", "neither stalled nor frozen: nobody can tell"
    assert may_run(looked_at(seen, at(5000)))


def test_a_box_that_is_off_after_its_queue_was_done_is_no_trouble() -> None:
    done = State(session=Session(at(0), 7, RELEASE, "box-a", 0, ended="queue.done"))
    ended = queue(state=done, is_alive=None, is_cell_alive=None, silent="no route")
    assert told(ended).word == "done"
    assert not may_run(looked_at(ended, at(605)))


@pytest.mark.parametrize(("by", "word"), [("drain", "drained"), ("stop", "stopped")])
def test_a_drain_is_told_by_the_word_for_it_and_by_no_sentence(by: str, word: str) -> None:
    session = Session(at(0), 7, RELEASE, "box-a", 0, "queue.stopped", "a sentence", by)
    ended = queue(state=State(session=session), is_alive=False, is_cell_alive=False)
    assert told(ended).word == word


def test_a_trainer_without_a_process_is_dead_once_its_agent_should_have_said_so() -> None:
    dead = queue(is_cell_alive=False)
    assert told(dead, 600 + TRAINER_GRACE_S - 1).word == "running"
    found = told(dead, 600 + TRAINER_GRACE_S + 1)
    assert found.word == "trainer dead"
    assert "no process of a is left" in found.sentence
    assert told(dead, 4000).word == "trainer dead", "and its agent is stalled, which follows"


def test_between_its_end_and_its_agents_word_a_cell_is_not_called_dead() -> None:
    """Its lock is free for an instant after hours; the agent has just said that it runs."""
    just_ended = queue(is_cell_alive=False, heartbeat=beat(7200))
    assert told(just_ended, 7201).word == "running"


def test_an_attempt_that_begins_is_not_called_dead_by_the_heartbeat_before_it() -> None:
    begins = queue(
        state=with_state(Running(2, at(590))), is_cell_alive=False, heartbeat=beat(555, cell="b")
    )
    assert told(begins, 600).word == "running"


def test_a_clock_that_is_off_kills_no_trainer() -> None:
    hour_s = 3600.0
    for ahead_s in (hour_s, -hour_s):
        known = with_state(Running(1, at(hour_s + 600 + ahead_s)))
        session = Session(at(hour_s + 600 + ahead_s), 7, RELEASE, "box-a", 0)
        view = queue(
            state=replace(known, session=session),
            heartbeat=beat(hour_s + 600 + ahead_s),
            clock_ahead_s=ahead_s,
            is_cell_alive=False,
        )
        assert told(view, hour_s + 605).word == "running"
        assert told(view, hour_s + 640).word == "trainer dead"
        assert heartbeat_age_s(view, at(hour_s + 640)) == pytest.approx(40)


@pytest.mark.parametrize(
    "now", [Succeeded(1, at(600)), Failed(1, at(600), "OOM", "r", RELEASE, is_final=False)]
)
def test_a_cell_that_has_ended_needs_no_trainer(now: Any) -> None:
    assert told(queue(state=with_state(now), is_cell_alive=False), 650).word == "running"


def test_where_nobody_can_tell_of_the_trainer_it_is_not_dead() -> None:
    assert told(queue(is_cell_alive=None), 650).word == "running"


def test_a_dead_agent_and_its_living_cell_are_told_apart() -> None:
    orphan = queue(is_alive=False)
    assert told(orphan).word == "agent dead"
    assert told(orphan).sentence.endswith("; the cell is still running")
    assert "is still running" not in told(queue(is_alive=False, is_cell_alive=False)).sentence


def test_doubt_that_is_no_silence_is_unknown() -> None:
    doubtful = queue(is_alive=None)
    assert told(doubtful).word == "unknown"
    assert may_run(looked_at(doubtful, at(605)))


def test_a_queue_that_skipped_lines_is_not_done() -> None:
    known = queue().state
    assert known and known.session
    ended = replace(known.session, ended="queue.done", reason="line 2 cannot be read", by="done")
    found = told(queue(is_alive=False, state=replace(known, session=ended)))
    assert found.word == "incomplete"
    assert "line 2 cannot be read" in found.sentence


def test_a_cell_that_waits_for_room_is_not_told_as_running() -> None:
    found = told(queue(state=with_state(Waiting(1, at(500), "DISK", awaits_room=True))))
    assert (found.word, "box-a" in found.sentence) == ("no room", True)
    assert told(queue(state=with_state(Waiting(1, at(500), "GONE")))).word == "running"


def test_a_wait_has_an_end_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    waits = Waiting(2, at(500), "NET", course="WAIT_NETWORK", until=at(800))
    record = CellRecord(state=waits, attempts=2, retries={"NET": 2})
    known = replace(with_state(waits), cells={"a": record})
    found = told(queue(state=known))
    assert found == Condition("idle", "a waits for the network until 08:13, try 3 of 6")
    slow = queue(state=known, clock_ahead_s=-3600.0)
    assert told(slow).sentence == "a waits for the network until 09:13, try 3 of 6"
    own = replace(record, state=replace(waits, failure="MINE", course=None), retries={"MINE": 1})
    found = told(queue(state=replace(known, cells={"a": own})))
    assert found.sentence == "a is retried at 08:13, try 2"
    monkeypatch.undo()
    time.tzset()


def test_while_another_cell_runs_that_one_is_said() -> None:
    waits = CellRecord(state=Waiting(2, at(500), "NET", until=at(800)), attempts=2)
    known = with_state(Running(1, at(590)))
    both = replace(known, cells={"w": waits, **known.cells})
    assert told(queue(state=both)) == Condition("running", "works on a")


def test_a_box_that_is_being_set_up_is_said_to_be_and_is_at_work():
    claimed = queue(is_cell_alive=None)
    one = replace(claimed, heartbeat=replace(beat(600, None), phase="setup"))
    assert told(one, 601).word == "running"
    assert told(one, 601).sentence == "sets up box-a before its first cell"
