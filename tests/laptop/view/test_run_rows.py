from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from run_on_disk import (
    agent_started,
    cell_got_worse,
    cell_progress,
    cell_started,
    cell_verified,
    from_now,
    held,
    make_run,
)

from boxcar.laptop.run.view import RunView
from boxcar.laptop.view.board.terminal_lines import draw_rows
from boxcar.laptop.view.looks import ASCII
from boxcar.laptop.view.run_fields import BOXES, CELLS_BELOW_TITLE, state_words
from boxcar.laptop.view.run_rows import Facts, RunRows, headline
from boxcar.shared.files.heartbeat import Copying

EN = Facts("local", "", "", glyphs=ASCII)
ZH = replace(EN, language="zh")


def rows_of(view: RunView, *named: str) -> RunRows:
    return RunRows(view, replace(EN, metrics=named))


def test_the_curve_is_what_the_journal_and_then_the_heartbeat_say_each_once(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    reports = [cell_progress("a", step, loss=loss) for step, loss in ((1, 0.9), (2, 0.5))]
    run.say("queue_1", agent_started(), cell_started("a"), *reports)
    with held(run.site.tier.lock("queue_1")):
        run.beat("queue_1", from_now(0), cell="a", progress={"step": 3, "loss": 0.25})
        [row] = rows_of(run.look()).under_way
        assert (row.headline, row.curve) == ("loss 0.25", (0.9, 0.5, 0.25))
        run.beat("queue_1", from_now(0), cell="a", progress={"step": 2, "loss": 0.5})
        [row] = rows_of(run.look()).under_way
        assert row.curve == (0.9, 0.5), "the same report twice would be a flat end"


def test_the_last_number_and_the_best_are_said_and_the_curve_is_of_the_last(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    early = ("cell.progress", {"cell": "a", "attempt": 1, "progress": {"val_loss": 0.0667}})
    run.say("queue_1", agent_started(), cell_started("a"), early, cell_got_worse("a"))
    with held(run.site.tier.lock("queue_1")):
        [row] = rows_of(run.look(), "val_loss").under_way
        assert (row.headline, row.curve) == ("val_loss 5.725 (best 0.0667)", (0.0667, 5.7246))
        now, best = {"val_loss": 6.5, "psnr": None}, {"val_loss": 0.0667, "psnr": 30.5}
        run.beat("queue_1", from_now(0), cell="a", progress=now, best=best)
        [row] = rows_of(run.look(), "val_loss", "psnr").under_way
        assert (row.headline, row.numbers) == (
            "val_loss 6.5 (best 0.0667)",
            "psnr - (best 30.5)",
        )


def test_the_loss_stands_first_else_what_the_job_names() -> None:
    assert headline({"psnr": 1.0, "val_loss": 0.5}, ("psnr",)) == "val_loss"
    assert headline({"psnr": 1.0, "step": 3}, ("psnr",)) == "psnr"
    assert headline({"phase": "eval"}, ("psnr",)) is None


def test_of_a_result_that_is_copied_it_says_how_far_and_for_how_long(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    succeeded = ("cell.succeeded", {"cell": "a", "attempt": 1, "seconds": 5.0})
    run.say("queue_1", agent_started(), cell_started("a"), succeeded)
    with held(run.site.tier.lock("queue_1")):
        copying = Copying("a", from_now(-60), 4 * 10**9, 12 * 10**9)
        run.beat("queue_1", from_now(0), phase="syncing", copying=copying)
        [row] = rows_of(run.look()).under_way
        assert state_words(row, EN) == "settling 33 %, 2m left"
        assert state_words(row, ZH) == "核验中 33 %，剩余 2m"
        run.beat("queue_1", from_now(0), phase="syncing")
        [row] = rows_of(run.look()).under_way
        assert state_words(row, EN) == "settling"


def test_a_result_in_doubt_says_so_beside_those_that_ended(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    told = {"cell": "a", "attempt": 1, "seconds": 5.0, "doubt": "12 of 100 epochs"}
    run.say("queue_1", agent_started(), cell_started("a"), ("cell.succeeded", told))
    run.say("queue_1", cell_verified("a"), cell_verified("b"))
    found = {row.cell: row for row in rows_of(run.look()).done}
    assert state_words(found["a"], EN) == "not certain: 12 of 100 epochs"
    drawn_ = [line.plain for [line] in draw_rows(CELLS_BELOW_TITLE, [*found.values()], EN, 120)]
    assert ["not certain" in line for line in drawn_] == [name == "a" for name in found]


def test_a_cell_between_two_attempts_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.say("queue_1", agent_started(), cell_started("a"))
    retried = {"cell": "a", "attempt": 1, "failure": "NET", "reason": "gone", "wait_s": 9}
    run.say("queue_1", ("cell.retried", retried))
    [row] = rows_of(run.look()).under_way
    assert (row.view.word, row.why) == ("retrying", "NET")


def test_a_box_without_a_gpu_shows_its_ram_and_what_it_does_between_two_cells(
    tmp_path: Path,
) -> None:
    run = make_run(tmp_path)
    run.say("queue_1", agent_started())
    with held(run.site.tier.lock("queue_1")):
        run.beat("queue_1", from_now(0), gauges={"memory_used_bytes": 9 * 2**30})
        fields = [
            field.text for row in rows_of(run.look()).boxes for field in BOXES.fields(row, EN)
        ]
    assert "RAM 9.0 G" in fields and "(between two cells)" in fields
