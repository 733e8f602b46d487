"""A box with a tier of its own was rented anew: what lies here proven is lent to it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from finished_run import WEIGHTS, FinishedRun, make_run, steps_until_end
from run_on_disk import cell_started, held

from boxcar.laptop.common.progress import Progress
from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.results import lend
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs.down import down
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.verify import verify
from boxcar.shared import timestamp
from boxcar.shared.cell.own_words import Own
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.files import attempt, codec, manifest, receipt
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.receipt import CellReceipt, Finding
from boxcar.shared.wire import envelope
from boxcar.shared.wire.question import A, Question, RunOnBox
from onbox.answers import door
from onbox.result import published

BAR = Progress("push")

needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


def answer_here(boxes: LocalSite, box: str, question: Question[A], *, timeout_s: float = 60) -> A:
    plan = boxes.plan
    run = RunOnBox(plan.run, plan.durable_dir, plan.box(box).data_dir)
    told = door.answer(envelope.write_question(question, run))
    return envelope.read_answer(question, box, 0, envelope.write_answer(told), "")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FinishedRun:
    """Cells a and b ended on box-a, were loaded there, and pulled; then the box was lost."""
    monkeypatch.setattr(LocalSite, "ask", answer_here)
    made = make_run(tmp_path)
    plan = replace(made.project.plan, durable_scope=EACH_BOX)
    made.project = replace(made.project, plan=plan)
    for cell in "ab":
        receive(made, cell)
    made.copy_here()
    lose_the_box(made)
    return made


def receive(run: FinishedRun, cell: str, *problems: str) -> None:
    """The box's receipt of what is published."""
    sha256 = manifest.sha256(run.site.tier.manifest(cell))
    findings = (Finding("weights.dat", "bytes", problems), Finding("metrics.json", "json"))
    made = CellReceipt("tiny", cell, 1, sha256, timestamp.utc_now(), findings)
    run.site.tier.receipt(cell).write_bytes(codec.to_document(made))


def lose_the_box(run: FinishedRun) -> None:
    """A new one under its name, to which release and queue were sent."""
    shutil.rmtree(run.site.tier.root)
    for folder in run.site.tier.folders():
        folder.mkdir(parents=True)
    run.write_queue("q1", "configs/a.yaml recon 3\nconfigs/b.yaml recon 3\n")


def comes_after(run: FinishedRun, cell: str, *names: str) -> None:
    cells = tuple(
        replace(one, own=Own(after=names)) if one.name == cell else one
        for one in run.project.plan.cells
    )
    run.project = replace(run.project, plan=replace(run.project.plan, cells=cells))


def words(run: FinishedRun) -> dict[str, str]:
    return {cell.name: cell.word for cell in look_at_run(run.site, timestamp.utc_now()).cells}


def on_tier(run: FinishedRun, cell: str) -> list[str]:
    """The files of the cell there."""
    return sorted(run.snapshot(run.site.tier.cell(cell)))


def test_what_lies_here_proven_is_lent_as_a_small_record_without_its_files(
    run: FinishedRun,
) -> None:
    assert words(run) == {"a": "queued", "b": "queued"}
    said = list(lend.lend_results(run.site, "q1", BAR))
    assert "box-a does not train these again" in said[-1] and said[-1].count("a, b") == 1
    tier = run.site.tier
    for cell in "ab":
        assert on_tier(run, cell) == ["manifest.json", "receipt.json"]
        assert tier.manifest(cell).read_bytes() == run.here(cell, "manifest.json").read_bytes()
        assert published.is_verified(tier, cell) and not published.has_files(tier, cell)
        claim = attempt.read_claim(tier.claim(cell))
        assert claim and (claim.queue, claim.box) == ("q1", "box-a")
    made = receipt.accepted_result(tier, "a")
    assert made and made.is_lent
    assert list(lend.lend_results(run.site, "q1", BAR)) == [], "the box has it by now"
    assert list(lend.lend_results(run.site, "q2", BAR)) == []


@needs_rsync
def test_every_verb_says_of_it_that_it_is_verified(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    list(lend.lend_results(run.site, "q1", BAR))
    assert words(run) == {"a": "verified", "b": "verified"}
    cells = look_at_run(run.site, timestamp.utc_now()).cells
    assert all(cell.sentence.startswith("verified, reused: ") for cell in cells)
    assert pull(run.project) == 0
    assert verify(run.project) == 0
    digest = receipt.read_run(run.project.results.receipt).digest
    assert down(run.project, approve=digest) == 0
    assert run.here("a", "weights.dat").read_bytes() == WEIGHTS


@needs_rsync
def test_a_copy_that_is_damaged_later_is_told_with_the_way_out(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    list(lend.lend_results(run.site, "q1", BAR))
    run.flip_byte(run.here("a", "weights.dat"), at=7)
    assert verify(run.project) == 1
    assert pull(run.project) == 1
    told = capsys.readouterr().err
    assert "rented anew, has no full copy" in told and "--abandon a" in told


def test_a_result_that_another_cell_comes_after_gets_its_files(run: FinishedRun) -> None:
    shutil.rmtree(run.project.results.cell("b"))  # not pulled: it is trained again
    comes_after(run, "b", "a")
    list(lend.lend_results(run.site, "q1", BAR))
    assert published.has_files(run.site.tier, "a")
    assert run.site.tier.cell("a").joinpath("weights.dat").read_bytes() == WEIGHTS
    assert not run.site.tier.lent("a").exists()
    assert not run.site.tier.manifest("b").exists()


def test_a_cell_that_is_done_itself_needs_no_files_of_the_one_before(run: FinishedRun) -> None:
    comes_after(run, "b", "a")
    list(lend.lend_results(run.site, "q1", BAR))
    assert list(lend.lend_files(run.site, "q1", BAR)) == []
    assert not published.has_files(run.site.tier, "a")


def test_a_line_that_is_appended_later_gets_the_files_before_it_comes(run: FinishedRun) -> None:
    list(lend.lend_results(run.site, "q1", BAR))
    assert list(lend.lend_files(run.site, "q1", BAR)) == []
    later = replace(run.project.plan.cells[0], name="later", own=Own(after=("a",)))
    plan = replace(run.project.plan, cells=(*run.project.plan.cells, later))
    run.project = replace(run.project, plan=plan)
    with held(run.site.tier.lock("q1")):  # its agent is at work
        [said] = lend.lend_files(run.site, "q1", BAR)
    assert said == "a: its files were sent to box-a, because other cells come after it"
    assert published.has_files(run.site.tier, "a")
    assert list(lend.lend_files(run.site, "q1", BAR)) == []


def test_files_that_do_not_come_whole_count_for_nothing(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(run.project.results.cell("b"))
    comes_after(run, "b", "a")

    def send(source: Path, target: Path, on_bytes: object) -> None:
        shutil.copytree(source, target)
        run.flip_byte(target / "weights.dat", at=3)

    monkeypatch.setattr(lend.folders, "send_folder", send)
    with pytest.raises(TemporaryError, match="a: its result did not reach box-a intact"):
        list(lend.lend_results(run.site, "q1", BAR))
    assert on_tier(run, "a") == [] and not run.site.tier.manifest("a").exists()


def test_what_is_damaged_or_bad_here_is_trained_again_and_said(run: FinishedRun) -> None:
    run.flip_byte(run.here("a", "weights.dat"), at=7)
    made = receipt.read_cell(run.here("b", "receipt.json"))
    bad = replace(made, findings=(replace(made.findings[0], problems=("is empty of sense",)),))
    run.here("b", "receipt.json").write_bytes(codec.to_document(bad))
    said = [text for text in lend.lend_results(run.site, "q1", BAR) if "trained again" in text]
    assert said[0].startswith(
        "a: is trained again, because its copy here fails the check: weights.dat has SHA-256"
    )
    assert "b: is trained again" in said[1]
    assert words(run) == {"a": "queued", "b": "queued"}


def test_what_nobody_has_looked_into_is_refused_until_verify_has(run: FinishedRun) -> None:
    run.here("a", "receipt.json").unlink()
    with pytest.raises(InputError, match=r"a: its result is here, but .* was not loaded"):
        list(lend.lend_results(run.site, "q1", BAR))
    assert on_tier(run, "b") == []
    verify(run.project)
    list(lend.lend_results(run.site, "q1", BAR))
    assert words(run) == {"a": "verified", "b": "verified"}


def test_what_the_box_has_tried_itself_is_newer(run: FinishedRun) -> None:
    run.say("q1", cell_started("a"))
    list(lend.lend_results(run.site, "q1", BAR))
    assert on_tier(run, "a") == [] and on_tier(run, "b") != []


def test_an_agent_at_work_is_lent_nothing_beside_it(run: FinishedRun) -> None:
    with held(run.site.tier.lock("q1")), pytest.raises(TemporaryError, match="is at work"):
        list(lend.lend_results(run.site, "q1", BAR))
    assert on_tier(run, "a") == []


def test_a_cell_whose_line_is_gone_by_now_stays_in_the_roster(run: FinishedRun) -> None:
    cells = run.project.plan.cells[:1]
    run.project = replace(run.project, plan=replace(run.project.plan, cells=cells))
    run.write_queue("q1", "configs/a.yaml recon 3\n")
    list(lend.lend_results(run.site, "q1", BAR))
    assert words(run) == {"a": "verified", "b": "verified"}


def test_many_results_go_in_parts(run: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lend, "MOST_BYTES", 10)
    list(lend.lend_results(run.site, "q1", BAR))
    assert words(run) == {"a": "verified", "b": "verified"}


def test_a_launch_that_is_killed_at_any_step_is_gone_on_with(run: FinishedRun) -> None:
    shutil.rmtree(run.project.results.cell("b"))
    comes_after(run, "b", "a")
    lent = run.site.tier.root.parent
    before = lent.with_name("before")
    shutil.copytree(lent, before)
    die_at = 0
    is_done = False
    while not is_done:
        shutil.rmtree(lent)
        shutil.copytree(before, lent)
        die_at += 4
        steps = steps_until_end(lambda: list(lend.lend_results(run.site, "q1", BAR)), lent, die_at)
        is_done = steps is not None
        # Half of it is no result: the manifest is there only with all that it stands for.
        assert not run.site.tier.manifest("a").exists() or published.has_files(run.site.tier, "a")
        assert not is_done or die_at > 8, "it was never killed"
        list(lend.lend_results(run.site, "q1", BAR))
        assert words(run)["a"] == "verified"
        assert published.has_files(run.site.tier, "a")
