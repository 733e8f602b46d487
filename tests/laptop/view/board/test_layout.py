"""The board on terminals of any size: nothing is wider than the terminal, nothing that needs a
person is out of sight, and the next command is always there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from big_run import FACTS, NEXT, plain_lines, shot, view

from boxcar.laptop.view.board.focus import BOXES, DONE, FAILED, QUEUED, RUNNING, Focus
from boxcar.laptop.view.board.layout import layout
from boxcar.laptop.view.board.sheet import part_text
from boxcar.laptop.view.board.terminal_lines import Group, Line, progress_bar, shares, styled
from boxcar.laptop.view.looks import ASCII
from boxcar.laptop.view.needs import Quiet
from boxcar.laptop.view.run_rows import RunRows

SIZES = (
    *((40, 12), (50, 16), (60, 20), (72, 24), (80, 24), (80, 50)),
    *((100, 30), (120, 40), (132, 43), (160, 50), (200, 50), (240, 80)),
)
SHOTS = {(cells, boxes): shot(cells, boxes) for cells in (3, 36, 400) for boxes in (1, 20)}


def told(rows: RunRows, width: int, height: int | None, focus: Focus | None) -> str:
    return "\n".join(plain_lines(layout(rows, width, height, focus)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("made", SHOTS, ids=str)
def test_the_board_fits_and_shows_what_needs_a_person_and_what_to_type(
    size: tuple[int, int], made: tuple[int, int]
) -> None:
    width, height = size
    for language in ("en", "zh"):
        rows = replace(SHOTS[made], facts=replace(FACTS, language=language))
        lines = layout(rows, width, height, Focus())
        assert len(lines) == height
        assert max(line.cell_len for line in lines) <= width
        shown = "\n".join(plain_lines(lines))
        assert {"en": "needs attention", "zh": "需要处理"}[language] in shown
        assert "✗  " in shown, "a failed cell"
        assert NEXT in " ".join(plain_lines(lines[-4:]))
        if width > len(NEXT) + 40:
            assert {"en": "  (1 cell", "zh": "（1 cell"}[language] in shown


@pytest.mark.parametrize("size", [(20, 8), (10, 4), (3, 2), (1, 1)])
def test_a_terminal_that_is_much_too_small_breaks_nothing(size: tuple[int, int]) -> None:
    width, height = size
    for shown in ("overview", FAILED, DONE, BOXES):
        lines = layout(SHOTS[400, 20], width, height, Focus(shown))
        assert len(lines) == height
        assert max(line.cell_len for line in lines) <= width


def test_the_head_says_how_many_cells_there_are_and_how_old_it_is() -> None:
    rows = SHOTS[3, 1]
    head = plain_lines(layout(rows, 80, 24, Focus()))[:2]
    assert head[0].endswith("updated just now") and head[1].startswith("3 cells   ")
    assert plain_lines(layout(rows, 80, 24, None, looked_s=5.0))[0].endswith("updated 5s ago")
    chinese = replace(rows, facts=replace(FACTS, language="zh"))
    head = plain_lines(layout(chinese, 80, 24, Focus()))[:2]
    assert head[0].endswith("刚刚更新") and head[1].startswith("共 3 个 cell   ")


@pytest.mark.parametrize("shown", [FAILED, RUNNING, DONE, QUEUED, BOXES])
@pytest.mark.parametrize("size", SIZES)
def test_each_list_fits_and_keeps_the_next_command(shown: str, size: tuple[int, int]) -> None:
    lines = layout(SHOTS[400, 20], *size, Focus(shown))
    assert len(lines) == size[1]
    assert max(line.cell_len for line in lines) <= size[0]
    assert NEXT in " ".join(plain_lines(lines[-4:]))


def test_at_80x24_the_failures_of_400_cells_are_one_row_and_all_boxes_in_trouble_are_named() -> (
    None
):
    rows = SHOTS[400, 20]
    shown = told(rows, 80, 24, Focus())
    failed = sum(number for state, number in rows.counts if state == "failed")
    assert f"✗  {failed} cells" in shown and "M2 CUDA out of memory" in shown
    for row in rows.boxes:
        assert row.is_at_ease or f"!  {row.box} " in shown
    assert "unreachable 1s, but may well be running: check the console" in told(
        rows, 100, 24, Focus()
    )


def test_it_grows_with_the_window() -> None:
    small, large = (told(SHOTS[36, 20], *size, Focus()) for size in ((80, 24), (200, 60)))
    assert re.search("(more|fine): b$", small, re.MULTILINE)
    assert not re.search("(more|fine): [br]$", large, re.MULTILINE)
    assert "heartbeat" in large


def test_what_is_not_shown_is_counted_with_its_key() -> None:
    shown = told(SHOTS[400, 1], 80, 24, Focus())
    done, queued = len(SHOTS[400, 1].done), len(SHOTS[400, 1].queued)
    rows = shown.count("✓  ")
    assert f"… {done - rows} more: d  · {queued} queued: u" in shown


@pytest.mark.parametrize("height", [23, 40])
def test_without_keys_it_fills_what_a_terminal_shows_and_names_the_command_that_shows_all(
    height: int,
) -> None:
    lines = plain_lines(layout(SHOTS[36, 20], 80, height))
    shown = "\n".join(lines)
    assert len(lines) == height and lines[-1] == f"next: {NEXT}  (1 cell failed)"
    assert "queued: boxcar status --all" in shown
    assert "f failed" not in shown
    more = {40: SHOTS[36, 20].under_way, 23: []}[height]
    assert shown.count("▶  ") >= len(more)


def test_without_keys_it_is_no_longer_than_it_needs_and_shows_all_that_is_done() -> None:
    rows = SHOTS[3, 1]
    lines = plain_lines(layout(rows, 80, 40))
    assert len(lines) < 20 and "\n".join(lines).count("✓  ") == len(rows.done)


def test_a_terminal_without_these_letters_gets_plain_ones() -> None:
    rows = replace(SHOTS[36, 20], facts=replace(FACTS, glyphs=ASCII))
    assert told(rows, 80, 24, Focus()).isascii()


def test_the_chosen_row_is_in_sight_wherever_it_is_in_its_list() -> None:
    done = [row.cell for row in SHOTS[400, 20].done]
    for cell in (done[0], done[57], done[-1]):
        lines = layout(SHOTS[400, 20], 120, 24, Focus(DONE, chosen=cell))
        [row] = [one for one in lines if any("reverse" in str(part.style) for part in one.spans)]
        assert cell in row.plain


def test_a_filter_shows_the_cells_of_that_name_in_every_state() -> None:
    shown = told(SHOTS[400, 1], 120, 40, Focus(filter="SEED1"))
    assert "cells matching SEED1" in shown
    assert "_seed12 " in shown and "_seed3 " not in shown
    assert "nothing here" in told(SHOTS[400, 1], 80, 24, Focus(filter="no such"))


def test_nobody_is_needed_where_nothing_is_wrong() -> None:
    given = view(1, 1)
    rows = RunRows(given, replace(FACTS, quiet=Quiet()))
    assert "needs attention" not in told(rows, 80, 24, Focus())


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_words_of_what_needs_a_person_are_whole_where_half_of_the_board_holds_them(
    size: tuple[int, int], language: str
) -> None:
    quiet = Quiet(("Webhooks are sent by nobody, because the URL was not set at launch.",))
    facts = replace(FACTS, language=language, quiet=quiet)
    shown = told(RunRows(view(3, 1), facts), *size, Focus())
    words = " ".join(shown.split())
    assert "CUDA out of memory. Tried to allocate 2.00 GiB" in words
    assert "because the URL was not set at launch." in words


def bar_of(rows: RunRows, width: int = 80) -> str:
    return plain_lines(layout(rows, width, 24, Focus()))[2]


def test_a_bar_says_how_much_of_the_run_is_done_and_how_much_of_that_has_failed() -> None:
    rows = SHOTS[36, 1]
    bar = bar_of(rows)
    assert bar.endswith(f"  {len(rows.done)}/36") or f"  {len(rows.done)}/36 · " in bar
    room = sum(map(bar.count, "━╳─"))
    assert bar.count("╳") == len(rows.failed) * room // 36 > 0
    assert bar.count("━") > 0 < bar.count("─")
    assert "━" not in told(rows, 50, 14, Focus())[:200], "there it has no room"


def test_a_bar_is_full_with_the_last_cell_and_shows_one_failure_of_a_thousand() -> None:
    glyphs = FACTS.glyphs
    assert progress_bar(999, 1, 1000, 60, glyphs).plain == "━" * 59 + "╳"
    assert progress_bar(998, 1, 1000, 60, glyphs).plain == "━" * 58 + "╳─"
    assert progress_bar(0, 0, 1, 9, glyphs).plain == "─" * 9


def test_each_running_cell_has_a_bar_where_it_is_known_how_much_there_is() -> None:
    [row, *_rest] = SHOTS[36, 1].under_way
    said = {
        "━─────── 3/20": {"epoch": 3},
        "━━━━──── 50/100": {"step": 50, "total_steps": 100},
        "step 50": {"step": 50},
        "": {},
    }
    for text, progress in said.items():
        told = replace(row, view=replace(row.view, progress=progress))
        assert part_text(told, FACTS) == text
    assert "━─────── 3/20" in told_of_running(SHOTS[36, 1])


def told_of_running(rows: RunRows) -> str:
    return told(rows, 120, 24, Focus(RUNNING))


def test_the_title_says_by_what_is_sorted_and_marks_stand_before_the_names() -> None:
    rows = SHOTS[36, 1]
    at = Focus(DONE, sort="time", is_downward=True, marked=(rows.done[0].cell,))
    shown = told(rows, 80, 24, at)
    assert "by time ↓ ─" in shown and f"✓* {rows.done[0].cell[:5]}" in shown
    assert "by time ↑ ─" in told(rows, 80, 24, Focus(sort="time")), "in the overview, too"


def test_after_the_end_as_much_of_what_is_done_is_shown_as_has_room() -> None:
    given = view(60, 1)
    over = [cell for cell in given.cells if cell.word == "verified"] * 3
    cells = tuple(replace(cell, name=f"c{at}") for at, cell in enumerate(over))
    rows = RunRows(replace(given, cells=cells, queues=()), replace(FACTS, quiet=Quiet()))
    for focus in (None, Focus()):
        shown = told(rows, 80, 40, focus)
        assert shown.count("✓  ") >= 32 and len(shown.split("\n")) == 40


def test_each_row_is_drawn_once_and_none_to_see_how_many_lines_there_are() -> None:
    drawn: list[str] = []

    def draw(rows: Sequence[str]) -> list[Line]:
        drawn.extend(rows)
        return [styled(row) for row in rows]

    groups = [Group((styled("t"),), list("abcdefgh"), draw, lambda n: styled("more" * n), 1)] * 2
    given = shares(groups, 9)
    assert not drawn and sum(given) == 9
    lines = [line.plain for group, n in zip(groups, given, strict=True) for line in group.lines(n)]
    assert len(lines) == 9 and drawn == [line for line in lines if len(line) == 1 and line != "t"]


def test_the_first_number_of_a_cell_is_whole_or_not_there() -> None:
    for width in range(40, 140):
        shown = told(SHOTS[400, 20], width, 24, Focus(RUNNING))
        assert all("train_loss 0.3333" in line for line in shown.split("\n") if "train" in line)


def test_no_number_of_a_cell_is_cut_however_narrow_the_terminal_is() -> None:
    for width in range(40, 160):
        shown = told(SHOTS[400, 20], width, 24, Focus(RUNNING))
        assert not re.search(r"\d…", shown), (width, shown)
