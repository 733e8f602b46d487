from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_on_disk import (
    RunOnDisk,
    agent_started,
    cell_got_worse,
    cell_progress,
    cell_started,
    cell_verified,
    from_now,
    held,
    make_run,
)

from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.view.board.terminal_lines import draw_rows
from boxcar.laptop.view.gpu_history import NOTHING_SEEN, history_after_look
from boxcar.laptop.view.looks import ASCII
from boxcar.laptop.view.run_fields import BOXES, CELLS_BELOW_TITLE, state_words
from boxcar.laptop.view.run_rows import CellRow, Facts, RunRows, headline
from boxcar.laptop.view.run_tables import document_of_run
from boxcar.shared import state
from boxcar.shared.files.heartbeat import Copying, Seen
from boxcar.shared.state import CellRecord

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


SEEN = Seen(epoch=3, epochs=20, step=45, steps=100, numbers={"val_loss": 0.5, "lr": 0.01})


def beat_of(run: RunOnDisk, seen: Seen, **more: Any) -> None:
    run.beat("queue_1", from_now(0), **({"cell": "a", "attempt": 1, "seen": seen} | more))


def test_what_a_log_seems_to_say_is_marked_and_only_of_the_attempt_that_runs(
    tmp_path: Path,
) -> None:
    run = make_run(tmp_path)
    run.say("queue_1", agent_started(), cell_started("a"))
    with held(run.site.tier.lock("queue_1")):
        beat_of(run, replace(SEEN, per_s=44.1, left_s=130.0))
        [row] = rows_of(run.look()).under_way
        assert (row.headline, row.numbers) == ("~val_loss 0.5", "~lr 0.01")
        assert (row.view.epochs_done, row.view.speed, row.left_s) == ("~3/20 45%", "~44.1/s", 130.0)
        assert not row.view.progress, "no report"
        document = document_of_run(rows_of(run.look()), None, None)
        assert document["cells"][0]["seen"]["epoch"] == 3
        assert "seen" not in document["cells"][1]
        beat_of(run, SEEN, attempt=2)
        assert rows_of(run.look()).under_way[0].view.seen is None
    run.say("queue_1", cell_verified("a"))
    beat_of(run, SEEN)
    [row] = rows_of(run.look()).done
    assert (row.headline, row.view.epochs_done, row.view.seen) == ("", "", None)


def test_what_a_script_reports_itself_is_not_guessed_beside_it(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.say("queue_1", agent_started(), cell_started("a"))
    with held(run.site.tier.lock("queue_1")):
        beat_of(run, SEEN, progress={"epoch": 2, "psnr": 20.5})
        [row] = rows_of(run.look()).under_way
        assert (row.headline, row.numbers, row.view.epochs_done) == ("", "psnr 20.5", "2/3")
        beat_of(run, SEEN, progress={"epoch": 2})
        [row] = rows_of(run.look()).under_way
        assert (row.headline, row.view.epochs_done) == ("~val_loss 0.5", "2/3")


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Seen(epoch=3, epochs=20), "~3/20"),
        (Seen(epoch=3), "~3"),
        (Seen(epoch=1.5625, step=25, steps=48), "~25/48"),
        (Seen(step=250), "~250"),
        (Seen(numbers={"loss": 0.5}), ""),
    ],
)
def test_how_far_a_cell_seems_to_be(seen: Seen, said: str) -> None:
    view = CellView("a", "q", "box", "c", "t", None, 0, seen=seen)
    assert view.epochs_done == said
    of_ten = replace(view, epochs=10)
    assert of_ten.epochs_done == {"~3": "~3/10", "~25/48": "~1.56/10"}.get(said, said)


def test_looks_make_the_curve_of_a_guess_and_gpus_are_of_the_attempt(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.say("queue_1", agent_started(), cell_started("a"))
    history = NOTHING_SEEN
    gauges = {"utilization_percent": 50, "memory_used_bytes": 3, "memory_total_bytes": 4}
    with held(run.site.tier.lock("queue_1")):
        for at, loss in enumerate((2.0, 1.0, 1.0, 0.5)):
            seen = Seen(numbers={"loss": loss})
            more = {"cell": "a", "attempt": 1, "gauges": {"gpus": [gauges]}}
            run.beat("queue_1", from_now(60 * at), seen=seen, **more)
            history = history_after_look(history, run.look(60.0 * at))
        [row] = RunRows(run.look(180.0), EN, history).under_way
        run.beat("queue_1", from_now(240), cell="a", attempt=1, progress={"acc": 0.5})
        looked = history_after_look(history, run.look(240.0))
        run.beat("queue_1", from_now(300), cell="a", attempt=1, progress={"acc": 0.75})
        looked = history_after_look(looked, run.look(300.0))
        [reports] = RunRows(run.look(300.0), replace(EN, metrics=("acc",)), looked).under_way
    assert row.curve == (2.0, 1.0, 0.5)
    assert (reports.headline, reports.curve) == ("acc 0.75", (0.5, 0.75))
    assert row.gpu_percent.values == [50.0] * 4
    assert row.memory_percent.values == [75.0] * 4
    assert ("a", 2) not in history.gpus_of


def test_on_a_narrow_terminal_the_first_number_is_whole_and_its_columns_drop_instead() -> None:
    name = "recon_no_skip_connection_q0_seed0"
    now = CellRecord(state.Running(1, from_now(-60)), 1)
    view = CellView(name, "q", "box-a", "c", "t", 20, 0, now, 60.0, seen=replace(SEEN, per_s=44.1))
    row = CellRow(view, left_s=1560.0)
    [[line]] = draw_rows(CELLS_BELOW_TITLE, [row], EN, 60)
    assert {"~val_loss 0.5", "~3/20 45%", "26m left"} <= {*line.plain.split("  ")}
    assert "44.1" not in line.plain and line.cell_len <= 60
