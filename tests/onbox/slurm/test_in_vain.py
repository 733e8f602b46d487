from __future__ import annotations

from typing import Any

import pytest

from boxcar.shared.files.journal_chain import Event
from onbox.slurm import in_vain

Said = tuple[str, dict[str, Any]]


def session(*between: Said, by: str | None = "signal") -> list[Said]:
    """What one allocation writes."""
    end: list[Said] = [("agent.stopped", {"by": by})] if by else []
    return [("agent.started", {}), ("cell.started", {"cell": "a"}), *between, *end]


def step(number: int, **more: int) -> Said:
    return ("cell.progress", {"cell": "a", "progress": {"step": number, **more}})


def events(*sessions: list[Said]) -> list[Event]:
    said = [one for part in sessions for one in part]
    return [
        Event(seq, str(seq), f"2026-11-22T10:00:{seq:02d}.000Z", type_, data)
        for seq, (type_, data) in enumerate(said, 1)
    ]


def test_three_restarts_without_a_new_step_are_enough_and_the_reason_is_said() -> None:
    same = session(step(50))
    found = in_vain.reason(events(session(step(50)), same, same, same), 4, None)
    assert "no cell has made a new step in the last 3 allocations" in str(found)
    assert "slurm: {time: …}" in str(found)


@pytest.mark.parametrize("by", ["signal", None])
def test_a_killed_allocation_counts_like_one_that_was_asked_to_leave(by: str | None) -> None:
    assert in_vain.reason(events(*[session(by=by)] * 3), 3, None)


@pytest.mark.parametrize(
    "progress",
    [step(51), step(3, epoch=2), ("cell.verified", {"cell": "b"}), ("cell.failed", {"cell": "b"})],
)
def test_any_of_three_that_came_further_lets_it_go_on(progress: Said) -> None:
    before = session(step(50, epoch=1))
    assert in_vain.reason(events(before, session(progress), session(), session()), 3, None) is None


def test_a_checkpoint_is_a_step_also_of_a_script_that_reports_none() -> None:
    all_alike = events(session(), session(), session())
    assert in_vain.reason(all_alike, 3, "2026-11-22T10:00:08.000Z") is None
    assert in_vain.reason(all_alike, 3, "2026-11-21T10:00:00.000Z")


def test_a_new_launch_is_given_its_own_chances() -> None:
    assert in_vain.reason(events(*[session()] * 5), 0, None) is None
    assert in_vain.reason(events(*[session()] * 2), 3, None) is None


def test_what_a_person_stopped_is_no_restart_in_vain() -> None:
    assert in_vain.reason(events(session(), session(by="stop"), session()), 3, None) is None


def test_how_often_slurm_has_started_it_again_is_in_the_environment() -> None:
    assert in_vain.restarts({"SLURM_RESTART_COUNT": "3"}) == 3
    assert in_vain.restarts({"SLURM_RESTART_COUNT": "1", "BOXCAR_RESUBMITS": "2"}) == 3
    assert in_vain.restarts({}) == in_vain.restarts({"SLURM_RESTART_COUNT": "x"}) == 0
