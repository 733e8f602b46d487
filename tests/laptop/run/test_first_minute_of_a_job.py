"""The look after a launch on a cluster, where an agent starts when Slurm says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from run_on_disk import RELEASE, make_run

from boxcar.laptop.hosts.scheduled import Scheduled
from boxcar.laptop.run import first_minute
from boxcar.laptop.run.first_minute import Sign, Started
from boxcar.laptop.run.view import QueueView
from boxcar.shared.process import end_reason
from boxcar.shared.state import Session, State

BEGUN = Session("2026-11-22T10:00:00.000Z", 7, RELEASE, "box-a", 0)


def seen(folder: Path, reason: str, session: Session | None = None) -> Sign | None:
    state = State(session=session)
    queue = QueueView("q", "box-a", state=state, scheduled=Scheduled("7_0", reason))
    one = Started("q", "box-a", None, float("-inf"))
    return first_minute._seen(make_run(folder).site, one, queue)


@pytest.mark.parametrize(("reason", "is_good"), [("Priority", True), ("QOSMaxGRES", False)])
def test_a_job_that_waits_shows_why_and_that_is_enough(
    tmp_path: Path, reason: str, is_good: bool
) -> None:
    sign = seen(tmp_path, reason)
    assert sign and sign.is_good is is_good and reason in sign.message.text


def test_a_job_that_slurm_has_not_considered_yet_is_waited_for(tmp_path: Path) -> None:
    assert seen(tmp_path, "None") is None


def test_a_task_that_has_ended_with_its_one_cell_is_well(tmp_path: Path) -> None:
    over = replace(BEGUN, ended="agent.stopped", by=end_reason.TURN)
    sign = seen(tmp_path, "JobArrayTaskLimit", over)
    assert sign and sign.is_good and "the next task runs the next cell" in sign.message.text


def test_one_whose_time_limit_came_in_its_first_minute_is_started_again_and_has_not_failed(
    tmp_path: Path,
) -> None:
    over = replace(BEGUN, ended="agent.stopped", by=end_reason.SIGNAL)
    sign = seen(tmp_path, "BeginTime", over)
    assert sign and sign.is_good and "BeginTime" in sign.message.text


@pytest.mark.parametrize("reason", ["None", "Priority"])
def test_an_agent_that_has_begun_since_squeue_was_asked_has_not_ended(
    tmp_path: Path, reason: str
) -> None:
    assert seen(tmp_path, reason, BEGUN) is None
