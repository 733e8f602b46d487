"""Bars on a terminal of 80 columns."""

from __future__ import annotations

import io

from rich.console import Console

from boxcar.laptop.common.bars import Bars
from boxcar.laptop.common.progress import THINGS, Progress


def drawn(progress: Progress, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    bars = Bars(progress, console, str)
    with console.capture() as captured:
        for part in bars.get_renderables():
            console.print(part)
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def test_one_part_is_one_row() -> None:
    progress = Progress("push")
    progress.part(2_000_000, "box-a").at(1_000_000)
    [row] = drawn(progress)
    assert "push box-a" in row and "1.0/2.0 MB" in row and len(row) <= 80


def test_each_part_at_work_has_a_row_below_that_of_all() -> None:
    progress = Progress("pull")
    progress.expect(10_000_000)
    progress.part(1_000_000, "box-a seg").end()
    progress.part(2_000_000, "box-a recon_" + "x" * 80).at(500_000)
    progress.part(2_000_000, "box-b det").at(1)
    rows = drawn(progress)
    assert [row.split()[1] for row in rows] == ["pull", "box-a", "box-b"]
    assert "1.5/10.0 MB" in rows[0] and all(len(row) <= 80 for row in rows)


def test_cells_are_counted_and_the_one_at_work_is_named() -> None:
    progress = Progress("smoke", THINGS)
    part = progress.part(36)
    part.add(3)
    part.doing = "[red]recon"
    [row] = drawn(progress)
    assert "smoke [red]recon" in row and " 3/36 " in row


def test_more_boxes_than_rows_are_still_one_screen() -> None:
    progress = Progress("push")
    for number in range(20):
        progress.part(100, f"box-{number}").at(50)
    assert len(drawn(progress)) <= 10


def test_the_time_left_is_the_one_that_was_told() -> None:
    progress = Progress("running", THINGS, is_left_told=True)
    for name, left_s in (("queue_1", 70.0), ("queue_2", None)):
        part = progress.part(5, name)
        part.doing, part.left_s = "recon", left_s
    rows = drawn(progress)
    assert [row.split()[-1] for row in rows] == ["-:--:--", "0:01:10", "-:--:--"]
