from __future__ import annotations

from dataclasses import replace

import pytest
from big_run import FACTS, plain_lines, shot

from boxcar.laptop.view.board.focus import BESIDE, HELP, LOG, RUNNING, STORY, WHY, Focus
from boxcar.laptop.view.board.layout import layout
from boxcar.laptop.view.board.pages import OpenedCell
from boxcar.laptop.view.looks import ASCII
from boxcar.laptop.view.run_rows import RunRows

SHOT = shot(36, 3)
TEXT = [f"epoch {n} loss {1 / (n + 1):.3f}" for n in range(200)]
OPENED = OpenedCell(
    "seg_explode",
    "failed",
    ("box-a  2/20", "M2 CUDA out of memory"),
    ("11-28 attempt 1",),
    ("what to do: a smaller batch", "  1. halve it"),
    TEXT,
)


def shown(
    focus: Focus,
    opened: OpenedCell = OPENED,
    size: tuple[int, int] = (80, 24),
    rows: RunRows = SHOT,
) -> list[str]:
    at = replace(focus, opened=opened.cell)
    lines = layout(rows, *size, at, opened)
    assert len(lines) == size[1] and max(line.cell_len for line in lines) <= size[0]
    return plain_lines(lines)


def title_of(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("── 1 log"))


def test_it_shows_how_the_cell_stands_and_the_end_of_its_log() -> None:
    lines = shown(Focus(page=LOG))
    assert "✗ seg_explode  failed" in lines
    assert "  M2 CUDA out of memory" in lines
    assert "epoch 199 loss 0.005" in lines
    assert title_of(lines).endswith(" the end ─")
    assert any(line.startswith("next: ") for line in lines)


def test_the_title_says_whether_a_log_that_grows_is_followed_and_how_far_below_its_end_is() -> None:
    running = replace(OPENED, state="running")
    assert title_of(shown(Focus(page=LOG), running)).endswith(" following ─")
    lines = shown(Focus(page=LOG, top=10), running)
    last = max(n for n in range(200) if TEXT[n] in lines)
    assert title_of(lines).endswith(f" {199 - last} lines below: G ─")


def test_what_is_written_and_what_is_read_from_above_moves_nothing_that_somebody_reads() -> None:
    at = Focus(page=LOG, top=10)
    grown = replace(OPENED, log=[*TEXT, "more"])
    older = replace(OPENED, log=["older"] * 300 + TEXT, first=-300)
    part = shown(at)[7:-2]
    assert part[0] == TEXT[10]
    assert shown(at, grown)[7:-2] == shown(at, older)[7:-2] == part


def test_above_the_first_line_that_is_here_it_says_that_more_comes() -> None:
    told = replace(OPENED, has_more=True)
    assert title_of(shown(Focus(page=LOG, top=-1_000_000), told)).endswith(" loading… ─")
    assert told.wants_more(0) and not told.wants_more(None) and not OPENED.wants_more(0)
    lines = shown(Focus(page=LOG, top=-1_000_000))
    assert TEXT[0] in lines and "below" in title_of(lines)


def test_what_happened_and_why_are_its_other_pages() -> None:
    assert "11-28 attempt 1" in shown(Focus(page=STORY))
    why = shown(Focus(page=WHY))
    assert "what to do: a smaller batch" in why and "  1. halve it" in why


def test_a_log_that_is_not_here_yet_and_one_that_does_not_exist_are_told_apart() -> None:
    told = [OpenedCell("a", "running", log=log) for log in (None, ())]
    asking, missing = (shown(Focus(page=LOG), one) for one in told)
    assert "loading…" in asking and "no log yet" in missing
    assert "loading…" in shown(Focus(page=WHY), told[0])


def test_a_wide_line_of_a_log_is_wrapped_and_cannot_drive_the_terminal() -> None:
    log = ("\x1b[2Jx" * 60, "层" * 90, "x" * 1_000_000)
    for size in ((80, 24), (40, 12), (5, 3)):
        for top in (None, 0):
            shown(Focus(page=LOG, top=top), OpenedCell("a", "running", log=log), size)


def test_what_is_searched_is_marked_wherever_it_stands() -> None:
    opened = replace(OPENED, log=["no", "a LOSS and a loss"])
    lines = layout(SHOT, 80, 24, Focus(page=LOG, opened="seg_explode", search="loss"), opened)
    [line] = [line for line in lines if line.plain.startswith("a LOSS")]
    assert [line.plain[part.start : part.end] for part in line.spans] == ["LOSS", "loss"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_keys_can_be_read_on_a_small_terminal_too(language: str) -> None:
    rows = replace(SHOT, facts=replace(FACTS, language=language))
    whole = shown(Focus(page=HELP), size=(80, 24), rows=rows)
    assert any("Space, =" in line for line in whole) and any("q, Ctrl-C" in line for line in whole)
    first = shown(Focus(page=HELP), size=(50, 14), rows=rows)
    assert not any("q, Ctrl-C" in line for line in first)
    assert any("q, Ctrl-C" in line for line in shown(Focus(page=HELP, top=99), size=(50, 14)))


def test_two_cells_stand_beside_each_other_with_their_curves_on_one_scale() -> None:
    first, second = (row.cell for row in SHOT.under_way[:2])
    at = Focus(RUNNING, page=BESIDE, marked=(first, second))
    lines = plain_lines(layout(SHOT, 120, 24, at))
    [names] = [line for line in lines if first in line]
    assert second in names
    assert any(line.startswith("train_loss") and line.count("0.3333") == 2 for line in lines)
    assert any(line.startswith("progress") and line.count("━─────── 3/20") == 2 for line in lines)
    gone = replace(at, marked=(first, "a cell that is not there any more"))
    assert any(first in line for line in plain_lines(layout(SHOT, 120, 24, gone)))
    rows = replace(SHOT, facts=replace(FACTS, glyphs=ASCII))
    assert "\n".join(plain_lines(layout(rows, 50, 14, at))).isascii()
