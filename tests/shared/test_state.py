from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.errors import DamagedError
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.state import (
    NOTHING_YET,
    WARNINGS_KEPT,
    CellRecord,
    Claimed,
    Failed,
    Preempted,
    Queued,
    Running,
    Session,
    State,
    Succeeded,
    Synced,
    Verified,
    Waiting,
    merge,
    replay,
)

COMMON = {"run": "digits-ablation", "queue": "queue_1", "box": "box-a"}
CELL = "recon_baseline"
SHA = "5" * 64

Said = tuple[str, dict[str, Any]]


def events(*said: Said) -> list[Event]:
    """Events as a journal holds them, one second apart from 10:00:01 on."""
    return [
        Event(seq, f"evt_{seq}", at(seq), type, COMMON | data)
        for seq, (type, data) in enumerate(said, start=1)
    ]


def at(seq: int) -> str:
    return f"2026-11-20T10:{seq // 60:02}:{seq % 60:02}.000Z"


def of_cell(*said: Said) -> CellRecord:
    return replay(events(*said)).cell(CELL)


def agent_started(**data: Any) -> Said:
    return "agent.started", {"pid": 7, "release": "3f9a", "start_index": 0} | data


def claimed(**data: Any) -> Said:
    return "cell.claimed", {"cell": CELL} | data


def started(attempt: int = 1) -> Said:
    return "cell.started", {"cell": CELL, "attempt": attempt, "task": "reconstruction"}


def progress(step: int) -> Said:
    return "cell.progress", {"cell": CELL, "attempt": 1, "progress": {"step": step}}


def retried(attempt: int = 1, failure: str = "gpu-lost", seconds: float | None = 5.0) -> Said:
    data = {"cell": CELL, "attempt": attempt, "failure": failure, "reason": "x", "wait_s": 30}
    return "cell.retried", data if seconds is None else data | {"seconds": seconds}


def preempted(attempt: int = 1) -> Said:
    return "cell.preempted", {"cell": CELL, "attempt": attempt, "seconds": 5.0}


def failed(attempt: int = 1, **data: Any) -> Said:
    base = {"failure": "config", "reason": "KeyError: 'lr'", "release": "3f9a", "seconds": 5.0}
    return "cell.failed", {"cell": CELL, "attempt": attempt} | base | data


def succeeded(attempt: int = 1) -> Said:
    return "cell.succeeded", {"cell": CELL, "attempt": attempt, "seconds": 5.0}


def synced(attempt: int = 1) -> Said:
    return "cell.synced", {"cell": CELL, "attempt": attempt, "manifest_sha256": SHA}


def verified(attempt: int = 1) -> Said:
    return "cell.verified", {"cell": CELL, "attempt": attempt, "manifest_sha256": SHA}


# --- one event at a time


def test_nothing_has_happened_to_a_cell_without_events():
    assert replay([]) == State()
    assert replay([]).cell(CELL) == NOTHING_YET == CellRecord(state=Queued(), attempts=0)


@pytest.mark.parametrize(
    ("said", "state", "word"),
    [
        (claimed(), Claimed(at(1)), "claimed"),
        (started(2), Running(2, at(1)), "running"),
        (retried(2), Waiting(2, at(1), "gpu-lost", until=at(31)), "retrying"),
        (preempted(2), Preempted(2, at(1)), "preempted"),
        (
            failed(2, is_final=True),
            Failed(2, at(1), "config", "KeyError: 'lr'", "3f9a", is_final=True),
            "failed",
        ),
        (succeeded(2), Succeeded(2, at(1)), "succeeded"),
        (synced(2), Synced(2, at(1), SHA), "synced"),
        (verified(2), Verified(2, at(1), SHA), "verified"),
    ],
)
def test_each_event_of_a_cell_leads_to_its_state(said, state, word):
    found = of_cell(said).state
    assert found == state
    assert found.word == word


def test_a_failure_is_final_only_where_it_says_so():
    state = of_cell(failed()).state
    assert isinstance(state, Failed) and not state.is_final


def test_a_failure_is_from_before_once_another_agent_has_started():
    failure = of_cell(agent_started(), failed()).state
    assert isinstance(failure, Failed) and not failure.is_from_before
    assert of_cell(agent_started(), failed(), agent_started()).state == dataclasses.replace(
        failure, is_from_before=True
    )


@pytest.mark.parametrize("type", ["cell.started", "cell.retried", "cell.failed", "cell.verified"])
def test_an_event_that_lacks_what_its_type_must_say_is_damage(type):
    with pytest.raises(DamagedError, match="lacks"):
        replay(events((type, {"cell": CELL})))
    with pytest.raises(DamagedError, match="lacks"):
        replay(events(("agent.started", {"release": "3f9a"})))


def test_progress_is_the_last_one_told_and_a_new_attempt_begins_without():
    assert of_cell(started(), progress(10), progress(20)).progress == {"step": 20}
    assert of_cell(started(), progress(10)).state == Running(1, at(1))
    assert of_cell(started(), progress(10), retried(), started(2)).progress == {}


def test_the_best_stands_beside_it_and_ends_with_its_attempt():
    told = ("cell.progress", progress(10)[1] | {"best": {"val_loss": 0.0667}})
    assert of_cell(started(), told).best == {"val_loss": 0.0667}
    assert of_cell(started(), told, retried(), started(2)).best == {}
    assert of_cell(started(), told, progress(20)).best == {}, "of a version that knows none"


# --- whole lives


def test_the_whole_life_of_a_cell_that_goes_well():
    record = of_cell(
        agent_started(), claimed(), started(), progress(9), succeeded(), synced(), verified()
    )
    assert record == CellRecord(
        state=Verified(1, at(7), SHA),
        attempts=1,
        seconds=5.0,
        progress={"step": 9},
        times_verified=1,
    )


def test_the_whole_life_of_a_cell_that_is_retried_and_preempted():
    record = of_cell(
        *(agent_started(), claimed(), started(1), retried(1), started(2), preempted(2)),
        *(agent_started(), started(3), succeeded(3), synced(3), verified(3)),
    )
    assert record.state == Verified(3, at(11), SHA)
    assert (record.attempts, record.seconds, record.times_verified) == (3, 15.0, 1)


def test_a_cell_that_had_failed_can_be_started_again():
    record = of_cell(claimed(), started(1), failed(1), claimed(), started(2))
    assert record.state == Running(2, at(5))
    assert (record.attempts, record.seconds) == (2, 5.0)


def test_a_cell_that_was_verified_twice_shows_it():
    assert of_cell(verified(), verified(2)).times_verified == 2


def test_an_agent_that_comes_back_finds_the_cell_still_running():
    record = of_cell(agent_started(), claimed(), started(), progress(3), agent_started())
    assert record.state == Running(1, at(3))
    assert record.progress == {"step": 3}


def test_cells_do_not_touch_each_other():
    other = "cell.started", {"cell": "det_baseline", "attempt": 1}
    state = replay(events(started(), other, succeeded()))
    assert state.cell(CELL).state == Succeeded(1, at(3))
    assert state.cell("det_baseline").state == Running(1, at(2))


# --- retries and seconds


def test_retries_are_counted_by_failure_within_one_agents_time():
    first = (agent_started(), retried(1), retried(2), retried(3, "network"))
    assert of_cell(*first).retries == {"gpu-lost": 2, "network": 1}
    assert of_cell(*first, agent_started()).retries == {}
    assert of_cell(*first, agent_started(), retried(4)).retries == {"gpu-lost": 1}


def test_a_new_agent_forgets_retries_and_nothing_else():
    before = of_cell(agent_started(), claimed(), started(), retried())
    after = of_cell(agent_started(), claimed(), started(), retried(), agent_started())
    assert isinstance(before.state, Waiting)
    before = dataclasses.replace(
        before, state=dataclasses.replace(before.state, until=None)
    )  # it tries at once
    assert (after.state, after.attempts, after.seconds) == (
        before.state,
        before.attempts,
        before.seconds,
    )


def test_seconds_that_nobody_measured_are_taken_from_the_clock():
    assert of_cell(started(), progress(1), retried(seconds=None)).seconds == 2.0
    assert of_cell(retried(seconds=None)).seconds == 0.0


# --- the agent


def test_the_session_is_the_agent_that_started_last():
    state = replay(events(agent_started(), agent_started(pid=8, start_index=2)))
    assert state.session == Session(
        at=at(2), pid=8, release="3f9a", box="box-a", start_index=2, ended=None
    )


@pytest.mark.parametrize(
    ("said", "ended", "reason"),
    [
        ([("agent.stopped", {"reason": "told to"})], "agent.stopped", "told to"),
        ([("queue.done", {"verified": 8}), ("agent.stopped", {"reason": "x"})], "queue.done", None),
        (
            [("queue.stopped", {"reason": "disk"}), ("agent.stopped", {"reason": "x"})],
            "queue.stopped",
            "disk",
        ),
    ],
)
def test_a_session_ends_with_the_word_that_says_most(said, ended, reason):
    session = replay(events(agent_started(), *said)).session
    assert session is not None
    assert (session.ended, session.reason) == (ended, reason)


@pytest.mark.parametrize(
    ("said", "by"),
    [
        ([("queue.stopped", {"reason": "x", "by": "drain"}), ("agent.stopped", {})], "drain"),
        ([("agent.stopped", {"reason": "asked to stop", "by": "signal"})], "signal"),
        ([("queue.done", {}), ("agent.stopped", {"reason": "x", "by": "trouble"})], "done"),
        ([("queue.stopped", {"reason": "told to end by SIGTERM"})], "signal"),  # of v1
        ([], None),
    ],
)
def test_a_session_says_whose_doing_its_end_was(said, by):
    session = replay(events(agent_started(), *said)).session
    assert session is not None and session.by == by


def test_an_agent_that_starts_again_has_not_ended():
    session = replay(events(agent_started(), ("queue.done", {}), agent_started(pid=8))).session
    assert session is not None and session.ended is None and session.pid == 8


def test_the_end_of_an_agent_that_never_began_is_no_session():
    assert replay(events(("agent.stopped", {"reason": "x"}))).session is None


def test_the_last_warnings_are_kept_those_of_a_cell_too():
    said = [("box.warning", {"what": "disk", "text": str(number)}) for number in range(30)]
    state = replay(events(*said, ("box.warning", {"what": "copy", "text": "x", "cell": CELL})))
    assert len(state.warnings) == WARNINGS_KEPT
    assert state.warnings[-1].cell == CELL and state.warnings[-2].data["text"] == "29"
    assert state.cell(CELL) == NOTHING_YET


@pytest.mark.parametrize(
    "said",
    [
        ("cell.teleported", {"cell": CELL}),
        ("queue.started", {"cells": 8}),
        ("box.audit", {}),
        ("", {}),
        ("cell.started", {}),  # without a cell it is about nobody
    ],
)
def test_events_that_it_does_not_know_change_nothing(said):
    life = (agent_started(), claimed(), started())
    before, after = replay(events(*life)), replay(events(*life, said))
    assert (after.cells, after.session) == (before.cells, before.session)
    assert after.last_seq == before.last_seq + 1


# --- several queues


@pytest.mark.parametrize("turn", [1, -1])
def test_of_a_cell_that_was_moved_the_record_that_got_furthest_counts(turn):
    order = [
        of_cell(),
        of_cell(claimed()),
        of_cell(failed()),
        of_cell(preempted()),
        of_cell(retried()),
        of_cell(started()),
        of_cell(succeeded()),
        of_cell(synced()),
        of_cell(verified()),
    ]
    for behind, ahead in itertools.pairwise(order):
        states = {"q1": State({CELL: behind}), "q2": State({CELL: ahead})}
        in_turn = dict(list(states.items())[::turn])
        assert merge(in_turn, {}) == {CELL: ("q2", ahead)}


def test_of_two_records_that_got_equally_far_the_first_counts():
    first, second = of_cell(verified(1)), of_cell(verified(2))
    states = {"q1": State({CELL: first}), "q2": State({CELL: second})}
    assert merge(states, {}) == {CELL: ("q1", first)}


def test_of_a_cell_that_was_moved_the_record_of_the_claims_owner_counts():
    """A dead queue's Running outranks all that its new one may say for a while."""
    running, moved_on = of_cell(started(1)), of_cell(claimed(**{"from": "q1"}), failed(1))
    states = {"q1": State({CELL: running}), "q2": State({CELL: moved_on})}
    assert merge(states, {}) == merge(states, {CELL: "q2"}) == {CELL: ("q2", moved_on)}
    assert merge(states, {CELL: "q1"}) == {CELL: ("q1", running)}
    before_its_start = {"q1": State({CELL: running}), "q2": State()}
    assert merge(before_its_start, {CELL: "q2"}) == {CELL: ("q2", NOTHING_YET)}


def test_a_result_that_stands_counts_whoever_owns_the_cell():
    states = {"q1": State({CELL: of_cell(verified(1))}), "q2": State({CELL: of_cell(claimed())})}
    assert merge(states, {CELL: "q2"})[CELL][0] == "q1"


def test_merge_takes_the_cells_of_all_queues():
    states = {
        "q1": State({"a": of_cell(claimed())}),
        "q2": State({"b": NOTHING_YET}),
        "q3": State(),
    }
    merged = merge(states, {"b": "a queue that nobody knows"})
    assert merged == {"a": ("q1", of_cell(claimed())), "b": ("q2", NOTHING_YET)}
    assert merge({}, {}) == {}


# --- laws

LIFE = st.lists(
    st.sampled_from(
        [
            *(agent_started(), claimed(), started(1), started(2), progress(1), retried(1)),
            *(preempted(1), failed(1), succeeded(1), synced(1), verified(1)),
            *(("agent.stopped", {"reason": "x"}), ("queue.done", {}), ("cell.new", {"cell": "x"})),
        ]
    ),
    max_size=20,
)


@given(LIFE)
def test_no_order_of_events_breaks_the_replay(said):
    state = replay(events(*said))
    assert state.last_seq == len(said)
    assert state.cell(CELL).times_verified == said.count(verified(1))
    assert replay(iter(events(*said))) == state


def test_a_hundred_thousand_events_are_replayed():
    state = replay(long_journal(100_000))
    assert state.last_seq == 100_000
    assert len(state.cells) == 250
    assert all(isinstance(record.state, Verified) for record in state.cells.values())


def long_journal(count: int) -> Iterable[Event]:
    """Cells of 400 events each: claimed, started, much progress, verified."""
    for seq in range(1, count + 1):
        place, cell = seq % 400, f"cell_{(seq - 1) // 400}"
        type, data = {1: claimed(), 2: started(), 0: verified()}.get(place, progress(place))
        yield Event(seq, f"evt_{seq}", at(1), type, COMMON | data | {"cell": cell})
