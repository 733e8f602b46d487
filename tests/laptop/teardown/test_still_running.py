from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run

from boxcar.laptop.teardown.still_running import find_alive, kept_still
from boxcar.shared.disk import lock


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    return make_run(tmp_path)


@pytest.mark.parametrize("queue", ["q1", "q2", "of-an-earlier-release"])
def test_an_agent_is_known_by_its_lock(run: FinishedRun, queue: str) -> None:
    fd = lock.try_hold(run.site.tier.lock(queue))
    assert fd is not None
    (row,) = find_alive(run.site, ["a", "b"])
    assert queue in row.what and "invoke stop" in str(row.command)
    os.close(fd)
    assert find_alive(run.site, ["a", "b"]) == ()


def test_an_attempt_that_outlived_its_agent_is_known_by_its_log(run: FinishedRun) -> None:
    fd = lock.try_hold(run.project.scratch("box-b").log("a"))
    assert fd is not None
    (row,) = find_alive(run.site, ["a", "b"])
    assert row.cell == "a" and "box-b" in row.what and "invoke launch" in str(row.command)
    os.close(fd)
    assert find_alive(run.site, ["a", "b"]) == ()


def test_a_lock_that_cannot_be_asked_counts_as_alive(run: FinishedRun) -> None:
    log = run.project.scratch("box-a").log("a")
    shutil.rmtree(log.parent)
    log.parent.write_text("no folder")
    (row,) = find_alive(run.site, ["a"])
    assert "cannot tell" in row.what


def test_nothing_lives_where_the_tier_is_gone(run: FinishedRun) -> None:
    shutil.rmtree(run.site.tier.root)
    assert find_alive(run.site, ["a", "b"]) == ()
    with kept_still(run.site) as living:
        assert living == ()


def test_no_agent_can_start_while_the_queues_are_kept_still(run: FinishedRun) -> None:
    with kept_still(run.site) as living:
        assert living == ()
        assert lock.try_hold(run.site.tier.lock("q1")) is None
        assert lock.try_hold(run.site.tier.lock("q2")) is None
    assert not lock.is_held(run.site.tier.lock("q1"))


def test_a_queue_that_cannot_be_kept_still_is_named(run: FinishedRun) -> None:
    fd = lock.try_hold(run.site.tier.lock("q2"))
    assert fd is not None
    with kept_still(run.site) as living:
        assert ["q2" in row.what for row in living] == [True]
    os.close(fd)
