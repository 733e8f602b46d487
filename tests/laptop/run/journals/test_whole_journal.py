from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from run_on_disk import RunOnDisk, agent_started, cell_started, make_run

from boxcar.laptop.results import results_folder
from boxcar.laptop.run import run_journals
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import journal
from boxcar.shared.files.plan import EACH_BOX


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    run = make_run(tmp_path)
    run.say("queue_1", agent_started(), cell_started("a"), cell_started("b"))
    return run


def cut(run: RunOnDisk, lines: int) -> bytes:
    """Keep so many lines of the journal; what it was."""
    path = run.site.tier.journal("queue_1")
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:lines]))
    return whole


def test_a_journal_that_only_grew_is_whole(run: RunOnDisk) -> None:
    run.beat("queue_1", "2026-11-20T10:00:00.000Z", journal=run.journal("queue_1").end)
    run.site.results.journals.mkdir(parents=True)
    path = run.site.tier.journal("queue_1")
    (run.site.results.journals / path.name).write_bytes(path.read_bytes())
    run.say("queue_1", cell_started("b", 2))
    assert len(run_journals.read_whole_journal(run.site, "queue_1").events) == 4


@pytest.mark.parametrize("lines", [0, 1, 2])
def test_a_tail_that_is_missing_is_told_by_the_heartbeat(run: RunOnDisk, lines: int) -> None:
    run.beat("queue_1", "2026-11-20T10:00:00.000Z", journal=run.journal("queue_1").end)
    cut(run, lines)
    with pytest.raises(DamagedError, match=r"missing: invoke repair"):
        run_journals.read_whole_journal(run.site, "queue_1")
    queue = run.look().queue("queue_1")
    assert queue.is_damaged and queue.state is None
    assert queue.condition.word == "damaged"
    assert any(problem.endswith("missing") for problem in queue.problems)


@pytest.mark.parametrize("lines", [0, 1, 2])
def test_a_tail_that_is_missing_is_told_by_what_was_pulled(run: RunOnDisk, lines: int) -> None:
    whole = cut(run, lines)
    run.site.results.journals.mkdir(parents=True)
    (run.site.results.journals / "queue_1.jsonl").write_bytes(whole)
    with pytest.raises(DamagedError, match=r"missing: invoke repair"):
        run_journals.read_whole_journal(run.site, "queue_1")


def test_a_copy_of_an_earlier_run_or_a_damaged_one_tells_nothing(run: RunOnDisk) -> None:
    run.site.results.journals.mkdir(parents=True)
    copy = run.site.results.journals / "queue_1.jsonl"
    good = run.site.tier.journal("queue_1").read_bytes()
    other = journal.Journal(copy, {})
    for _ in range(9):
        other.append("agent.started")
    assert len(run_journals.read_whole_journal(run.site, "queue_1").events) == 3
    copy.write_bytes(good + b"rubbish\n")
    assert len(run_journals.read_whole_journal(run.site, "queue_1").events) == 3


def test_where_each_box_has_its_own_tier_a_box_that_was_rented_anew_has_lost_nothing(
    run: RunOnDisk,
) -> None:
    run.site.results.journals.mkdir(parents=True)
    run.site.tier.journal("queue_1").rename(run.site.results.journals / "queue_1.jsonl")
    assert run.look().queue("queue_1").is_damaged
    plan = replace(run.project.plan, durable_scope=EACH_BOX)
    run.project = replace(run.project, plan=plan)
    assert run.look().queue("queue_1").problems == ()
    assert results_folder.copies_of_reports(run.site) == {}
    # Where an agent was at work, its journal is missing.
    run.beat("queue_1", "2026-11-20T10:00:00.000Z")
    assert run.look().queue("queue_1").is_damaged
    assert results_folder.copies_of_reports(run.site)
