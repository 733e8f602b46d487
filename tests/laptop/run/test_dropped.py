from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run
from run_on_disk import cell_failed, cell_started

from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.roster import Line
from boxcar.laptop.run.view import RunView
from boxcar.laptop.verbs.down import down
from boxcar.laptop.verbs.next_step import next_step
from boxcar.laptop.verbs.verify import verify
from boxcar.shared import timestamp
from boxcar.shared.files import queue_line, receipt
from boxcar.shared.files.plan import Cell
from boxcar.shared.sentence import Sentence

A, B, C = (f"configs/{name}.yaml recon\n" for name in "abc")


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    """Cells a and b of q1 were pushed; nothing has run."""
    run = make_run(tmp_path)
    shutil.rmtree(run.site.tier.cells)
    run.site.tier.cells.mkdir()
    run.copy_here()
    run.write_release("r1", "a", "b")
    run.write_queue("q1", A + B)
    write(run, A + B)
    return run


def write(run: FinishedRun, text: str) -> None:
    """The local file, and what the plan makes of it."""
    path = run.root / "q1.txt"
    path.write_text(text)
    names = [line.name for line in queue_line.parse_queue(text.encode()).cells]
    cells = tuple(Cell(name, f"configs/{name}.yaml", "recon", 3, "q1", 0, None) for name in names)
    plan = replace(run.project.plan, cells=cells)
    run.project = replace(run.project, plan=plan, queue_files={"q1": path})


def on_tier(run: FinishedRun) -> Path:
    return run.site.tier.queue("q1")


def seen(run: FinishedRun) -> RunView:
    return look_at_run(run.site, timestamp.utc_now())


def lines(run: FinishedRun) -> dict[str, Line]:
    return {cell.name: cell.line for cell in seen(run).roster.cells}


@pytest.mark.parametrize("mark", ["# ", "##", " #"])
def test_a_cell_that_never_ran_is_dropped_by_a_mark_before_its_line(
    run: FinishedRun, mark: str
) -> None:
    write(run, A + mark + B)
    assert lines(run) == {"a": Line.IS_THERE, "b": Line.IS_THERE}
    on_tier(run).write_text(A + mark + B)
    assert lines(run) == {"a": Line.IS_THERE, "b": Line.IS_COMMENTED_OUT}
    assert {cell.name: cell.word for cell in seen(run).cells} == {"a": "queued", "b": "dropped"}


@pytest.mark.parametrize("tier", [A, "", A + "# configs/b.yaml two\n", A + "# b is no good\n"])
def test_a_line_that_was_deleted_or_became_another_is_a_doubt(run: FinishedRun, tier: str) -> None:
    on_tier(run).write_text(tier)
    write(run, A)
    assert lines(run)["b"] is Line.IS_GONE
    assert any(text.startswith("b: never ran") for text in seen(run).problems)


def test_a_queue_file_that_is_gone_or_cannot_be_read_drops_nothing(run: FinishedRun) -> None:
    write(run, "# " + A + "# " + B)
    on_tier(run).unlink()
    assert set(lines(run).values()) == {Line.IS_GONE}
    on_tier(run).mkdir()
    found = seen(run).roster
    assert found.doubts and not any(cell.is_dropped for cell in found.cells)


def test_a_line_that_push_has_yet_to_bring_is_no_doubt(run: FinishedRun) -> None:
    write(run, A + B + C)
    assert lines(run)["c"] is Line.IS_THERE


def test_a_line_whose_push_is_refused_is_said_to_stand_here_and_push_is_next(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    on_tier(run).write_text("# " + A + "# " + B + "# by hand\n")
    write(run, "# " + A + "# " + B + C)
    assert lines(run)["c"] is Line.IS_HELD_BACK
    (said,) = (text for text in seen(run).problems if text.startswith("c: never ran"))
    assert "only in the local file of q1" in said and "any more" not in said
    assert isinstance(said, Sentence) and "q1 的本地文件" in said.said("zh")
    step = next_step(seen(run), run.site)
    assert str(step.command) == "invoke push" and "c: never ran" in str(step.because)
    assert verify(run.project) == 1
    assert "says what to do: invoke push" in capsys.readouterr().err


@pytest.mark.parametrize("trace", ["event", "claim", "result"])
def test_a_cell_that_was_begun_is_not_dropped(run: FinishedRun, trace: str) -> None:
    on_tier(run).write_text(A + "# " + B)
    if trace == "event":
        run.say("q1", cell_started("b"), cell_failed("b"))
    elif trace == "claim":
        run.claim("b", "q1")
    else:
        run.publish("b")
    assert lines(run)["b"] is Line.IS_THERE


def test_the_gate_takes_dropped_cells_without_an_abandon_and_shows_them(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    on_tier(run).write_text("# " + A + "# " + B)
    write(run, "# " + A + "# " + B)
    assert verify(run.project) == 0
    made = receipt.read_run(run.project.results.receipt)
    assert [verdict.is_dropped for verdict in made.cells] == [True, True] and made.is_full
    said = capsys.readouterr()
    assert said.out.count("dropped") == 2 and "2 of 2 cells are verified, dropped" in said.err
    step = next_step(seen(run), run.site)
    assert str(step.command) == "invoke down"
    assert down(run.project, approve=made.digest[:12]) == 0
    assert "cell b, dropped: its line is commented out" in capsys.readouterr().err


def test_what_was_dropped_at_the_receipt_and_is_asked_for_again_shuts_the_gate(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    on_tier(run).write_text("# " + A + "# " + B)
    verify(run.project)
    digest = receipt.read_run(run.project.results.receipt).digest
    on_tier(run).write_text("# " + A + B)
    assert down(run.project, approve=digest[:12]) == 1
    assert "b is not published" in capsys.readouterr().err


def test_a_deleted_line_shuts_the_gate_and_an_abandon_opens_it(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    on_tier(run).write_text("# " + A)
    write(run, "# " + A)
    assert verify(run.project) == 1
    said = capsys.readouterr().err
    assert "b: never ran, and its line is no longer in any queue. Put it back into q1" in said
    step = next_step(seen(run), run.site)
    assert str(step.command) == "invoke verify" and "b: never ran" in str(step.because)
    assert down(run.project, abandon=["b"], because="a typo", approve="0" * 12) == 1
    assert verify(run.project) == 0


def test_a_teardown_that_goes_on_without_the_tier_knows_what_was_dropped(
    run: FinishedRun,
) -> None:
    on_tier(run).write_text("# " + A + "# " + B)
    verify(run.project)
    shutil.rmtree(run.site.tier.root)
    assert set(lines(run).values()) == {Line.IS_COMMENTED_OUT}
