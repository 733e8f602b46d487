from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run
from flips import flipped
from run_on_disk import cell_failed, cell_started

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.roster import Roster, RosterCell
from boxcar.shared import timestamp
from boxcar.shared.errors import Message
from boxcar.shared.files import codec
from boxcar.shared.files.queue_line import LAST_LINE_S
from boxcar.shared.files.receipt import CellVerdict, RunReceipt


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    return make_run(tmp_path)


def survey(run: FinishedRun) -> Roster:
    return look_at_run(run.site, timestamp.utc_now()).roster


def _names(run: FinishedRun) -> list[str]:
    return [cell.name for cell in survey(run).cells]


def test_the_plan_says_what_was_asked_for(run: FinishedRun) -> None:
    assert survey(run).cells == (
        RosterCell("a", "q1", "recon", "configs/a.yaml", 3, index=0),
        RosterCell("b", "q1", "recon", "configs/b.yaml", 3, index=1),
    )


def test_a_line_that_was_appended_on_the_tier_counts(run: FinishedRun) -> None:
    run.write_queue("q1", "# a comment\nconfigs/late.yaml seg 7\nconfigs/plain.yaml seg\n")
    late, plain = survey(run).cells[2:]
    assert late == RosterCell("late", "q1", "seg", "configs/late.yaml", 7)
    assert plain.epochs == 3  # the plan's


def test_a_queue_that_left_the_job_still_counts(run: FinishedRun) -> None:
    run.write_queue("q9", "configs/old.yaml seg 7\n")
    assert _names(run) == ["a", "b", "old"]


def test_the_cells_of_every_release_count(run: FinishedRun) -> None:
    run.write_release("r1", "a", "gone")
    run.write_release("r2", "other")
    assert sorted(_names(run)) == ["a", "b", "gone", "other"]


def test_results_that_are_here_do_not_make_a_cell(run: FinishedRun) -> None:
    (run.project.results.cell("d")).mkdir(parents=True)
    assert _names(run) == ["a", "b"]


def test_a_cell_that_is_published_counts_though_no_line_names_it(run: FinishedRun) -> None:
    run.publish("c")
    found = survey(run)
    assert found.cells[2] == RosterCell("c", "q1", "recon", "configs/c.yaml", 3)
    assert not found.strays and not found.doubts


def test_a_published_cell_whose_manifest_is_damaged_counts(run: FinishedRun) -> None:
    run.publish("c")
    run.site.tier.manifest("c").write_bytes(b"{")
    assert survey(run).cells[2] == RosterCell("c", "")


def test_a_cell_that_ran_counts_though_no_line_names_it(run: FinishedRun) -> None:
    """Its line was commented out, or an old editor buffer was saved over it."""
    run.say("q1", cell_started("ran"), cell_failed("ran"))
    run.say("q9", ("cell.claimed", {"cell": "only_claimed"}))  # a queue without a file
    assert survey(run).cells[2:] == (
        RosterCell("ran", "q1", "recon", "configs/ran.yaml", 3),
        RosterCell("only_claimed", "q9"),
    )


def test_a_cell_that_is_claimed_counts_though_no_line_and_no_event_names_it(
    run: FinishedRun,
) -> None:
    run.claim("c", "q2")
    assert survey(run).cells[2] == RosterCell("c", "q2")


def test_a_claim_that_cannot_be_read_is_a_doubt(run: FinishedRun) -> None:
    run.site.tier.claim("c").write_bytes(b"{")
    (doubt,) = survey(run).doubts
    assert str(run.site.tier.claim("c")) in doubt.what


def test_a_journal_that_cannot_be_read_is_a_doubt(run: FinishedRun) -> None:
    run.site.tier.journal("q9").write_bytes(b"no event\n")
    (doubt,) = survey(run).doubts
    assert str(run.site.tier.journal("q9")) in doubt.what


def test_results_that_are_missing_do_not_unmake_a_cell(run: FinishedRun) -> None:
    shutil.rmtree(run.site.tier.cells)
    assert _names(run) == ["a", "b"]


def test_a_damaged_plan_of_a_release_is_a_doubt_and_a_sentence(run: FinishedRun) -> None:
    plan = run.write_release("r1", "gone") / "plan.json"
    run.write_release("r2", "other")
    plan.write_bytes(plan.read_bytes()[:-20])
    found = survey(run)
    assert [cell.name for cell in found.cells] == ["a", "b", "other"]
    assert [str(plan.parent) in doubt.what for doubt in found.doubts] == [True]
    (sentence,) = found.sentences
    assert str(plan.parent) in sentence.text


def test_a_plan_that_is_not_its_releases_is_a_doubt(run: FinishedRun) -> None:
    plan = run.write_release("r1", "gone") / "plan.json"
    good = plan.read_bytes()
    for bad in flipped(good, 100, seed=31):
        plan.write_bytes(bad)
        found = survey(run)
        assert [cell.name for cell in found.cells] == ["a", "b"] and len(found.doubts) == 1
    plan.write_bytes(good)
    assert survey(run).doubts == ()


def test_a_list_of_files_that_is_not_its_releases_is_a_doubt(run: FinishedRun) -> None:
    path = run.write_release("r1", "gone") / "release.json"
    for bad in flipped(path.read_bytes(), 100, seed=31):
        path.write_bytes(bad)
        assert len(survey(run).doubts) == 1


def test_a_release_that_lost_its_plan_is_a_doubt(run: FinishedRun) -> None:
    (run.write_release("r1", "gone") / "plan.json").unlink()
    assert len(survey(run).doubts) == 1


def test_a_push_that_was_broken_off_is_no_doubt(run: FinishedRun) -> None:
    (run.site.tier.releases / "r1").mkdir()
    (run.site.tier.releases / ".r2.abcd.part").mkdir()
    assert survey(run).doubts == ()


def test_a_queue_that_cannot_be_read_is_a_doubt(run: FinishedRun) -> None:
    run.site.tier.queue("q9").mkdir()
    assert len(survey(run).doubts) == 1


def test_a_line_that_is_no_cell_is_said(run: FinishedRun) -> None:
    run.write_queue("q1", "configs/c.yaml seg ten\n")
    notes = survey(run).notes
    assert "line 1" in notes[0] and "whole number" in notes[0]


@pytest.mark.parametrize("line", ["configs/half", "configs/c.yaml seg 3"])
def test_a_last_line_without_a_line_feed_is_a_doubt_until_the_file_has_stood_still(
    run: FinishedRun, line: str
) -> None:
    path = run.site.tier.queue("q1")
    text = f"{path.read_text()}# later\n{line}"
    run.write_queue("q1", text)
    os.utime(path, (time.time() + 3600,) * 2)
    found = survey(run)
    assert [cell.name for cell in found.cells] == ["a", "b"]
    assert ["no line feed" in doubt.what for doubt in found.doubts] == [True]
    os.utime(path, (time.time() - LAST_LINE_S,) * 2)
    still = survey(run)
    run.write_queue("q1", f"{text}\n")
    assert still == survey(run)
    assert still.doubts == () and ("c" in {cell.name for cell in still.cells}) != bool(still.notes)


def test_a_remark_without_a_line_feed_is_no_doubt(run: FinishedRun) -> None:
    run.write_queue("q1", f"{run.site.tier.queue('q1').read_text()}# later")
    assert survey(run).doubts == ()


def test_a_name_that_leads_out_of_the_results_is_no_cell(run: FinishedRun) -> None:
    run.write_release("r1", "../../etc")
    found = survey(run)
    assert [cell.name for cell in found.cells] == ["a", "b"]
    assert "'../../etc'" in found.doubts[0].what


def test_a_stray_folder_is_named(run: FinishedRun) -> None:
    stray = run.site.tier.cell("stray")
    stray.mkdir()
    found = survey(run)
    assert found.strays == (stray,) and not found.doubts
    assert str(stray) in found.notes[0]


def test_without_the_tier_the_receipt_is_the_roster(run: FinishedRun) -> None:
    verdicts = (CellVerdict("a", "q1"), CellVerdict("late", "q2"))
    made = RunReceipt("tiny", timestamp.utc_now(), verdicts)
    run.project.results.root.mkdir(parents=True)
    run.project.results.receipt.write_bytes(codec.to_document(made))
    assert _names(run) == ["a", "b"]
    shutil.rmtree(run.site.tier.root)
    assert survey(run).cells[2] == RosterCell("late", "q2")


def test_a_local_line_that_nobody_can_read_is_a_doubt(run: FinishedRun) -> None:
    line = Message("queues/q1.txt:3: expected <cfg> <task> [epochs]")
    project = replace(run.project, doubts=(line,))
    (doubt,) = look_at_run(LocalSite(project, print), timestamp.utc_now()).roster.doubts
    assert doubt.cell is None and line.text in doubt.what
