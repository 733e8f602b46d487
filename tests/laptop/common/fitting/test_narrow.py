from __future__ import annotations

import pytest

from boxcar.laptop.common.text_layout import NOTHING, fit_columns, narrow_table, taken
from boxcar.shared.text_width import width_in_cells

NAME = "ablation_remove_skip_connection_q1_seed1"
HEADS = ("cell", "state", "note", "metric", "release")
ROWS = [
    (NAME, "verified", "-", "val_loss 0.5048, psnr_db 20.5, dice 0.91", "47f769376547"),
    ("seg", "failed", "-", "-", "47f769376547"),
]


def made(width, rows=ROWS, heads=HEADS, first_to_go=(4,), names=(0,)):
    return narrow_table(
        [*zip(heads, *rows, strict=True)], width, names=names, first_to_go=first_to_go, mark="…"
    )


def widths(found):
    return [max(width_in_cells(line) for f in c for line in f.split("\n")) for c in found.values()]


def test_where_there_is_room_all_is_as_it_was():
    found = made(200)
    assert [*zip(*found.values(), strict=True)] == [HEADS, *ROWS]


def test_a_column_that_says_nothing_goes_first():
    assert [*made(111)] == [0, 1, 3, 4]
    assert made(111)[0][1] == NAME


def test_then_those_that_may_and_a_name_ends_as_it_does():
    found = made(60)
    assert [*found] == [0, 1, 3]
    assert found[0][1].startswith("abl") and found[0][1].endswith("_q1_seed1")
    assert "…" in found[0][1]


def test_then_those_at_the_right_and_the_first_stays_however_narrow_it_is():
    assert [*made(30)] == [0, 1]
    assert [*made(12)] == [0] and widths(made(12)) == [12]


def test_many_columns_of_words_fold_before_one_of_them_goes():
    heads = ("cell", "a", "b", "c", "d")
    rows = [(NAME, *(["some words that fold anywhere"] * 4))]
    found = made(70, rows, heads, ())
    assert len(found) == 5 and taken(widths(found)) <= 70


NUMBERS = ("0.8735±0.0094", "+0.012 ±0.0041 ▲", "12.3 GB", "47f769376547", "2026-11-27T10:00")


@pytest.mark.parametrize("width", [*range(20, 100, 3)])
def test_a_number_is_whole_or_its_column_is_not_there(width):
    heads = ("cell", "val acc", "Δ baseline", "size", "changed", "release", "at")
    rows = [(NAME, *NUMBERS[:3], "model.depth=12→24 and more", *NUMBERS[3:])]
    found = made(width, rows, heads, first_to_go=(6, 5))
    shown = [found[at][1] for at in (1, 2, 3, 5, 6) if at in found]
    assert {*shown} <= {*NUMBERS}
    assert taken(widths(found)) <= width


def test_a_path_is_cut_in_its_middle_and_in_one_line():
    rows = [("a", "/home/somebody/projects/ablation/of/all/job.yaml is there")]
    [[_, found]] = [made(40, rows, ("box", "found"), ())[1]]
    path, *rest = found.split("\n")
    assert path.startswith("/home") and path.endswith("/job.yaml") and rest == ["is there"]


def test_a_url_is_all_there():
    url = "https://example.org/a/long/way/to/what/is/said/of/it.html"
    found = made(40, [("a", url)], ("what", "found"), ())
    assert found[1][1].replace("\n", "") == url and taken(widths(found)) <= 40


@pytest.mark.parametrize("width", range(36, 130))
def test_it_fits(width):
    found = made(width)
    assert taken(widths(found)) <= width


def test_chinese_names_are_measured_as_they_are_shown():
    rows = [("消融_去掉跳连_很长的名字_种子一_再长一些", "已验证", "x" * 60)]
    found = made(60, rows, ("cell", "state", "metric"), ())
    assert taken(widths(found)) <= 60 and found[0][1].endswith("些")


def test_the_columns_of_the_board_share_a_width_by_the_same_rule():
    assert fit_columns([10, 20, 0, 5], [4, 8, 0, 5], [3, 1, 0], 30) == {0: 10, 1: 11, 3: 5}
    assert fit_columns([10, 20, 0, 5], [4, 8, 0, 5], [3, 1, 0], 20) == {0: 9, 1: 9}
    assert fit_columns([10, 20], [4, 8], [1, 0], 3) == {0: 3}
    assert NOTHING == "-"
