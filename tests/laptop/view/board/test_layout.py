"""The board on terminals of any size: nothing is wider than the terminal, nothing that needs a
person is out of sight, and the next command is always there.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from big_run import FACTS, NEXT, plain_lines, shot, view

from boxcar.laptop.view.board.layout import (
    BOXES,
    DONE,
    FAILED,
    QUEUED,
    RUNNING,
    Focus,
    layout,
)
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
    assert re.search("(more|at ease): b$", small, re.MULTILINE)
    assert not re.search("(more|at ease): [br]$", large, re.MULTILINE)
    assert "heartbeat" in large


def test_what_is_not_shown_is_counted_with_its_key() -> None:
    shown = told(SHOTS[400, 1], 80, 24, Focus())
    done, queued = len(SHOTS[400, 1].done), len(SHOTS[400, 1].queued)
    rows = shown.count("✓  ")
    assert f"… {done - rows} more: d  · {queued} queued: q" in shown


@pytest.mark.parametrize("height", [23, 40])
def test_without_keys_it_fills_what_a_terminal_shows_and_names_the_command_that_shows_all(
    height: int,
) -> None:
    lines = plain_lines(layout(SHOTS[36, 20], 80, height))
    shown = "\n".join(lines)
    assert len(lines) == height and lines[-1] == f"next: {NEXT}  (1 cell failed)"
    assert "queued: boxcar status --all" in shown
    assert "[f]ailed" not in shown
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
