from __future__ import annotations

import pytest

from boxcar.laptop.common.text_layout import narrow_table, width_in_cells

NAME = "ablation_remove_skip_connection_q1_seed1"
HEADS = ("cell", "state", "note", "metric", "release")
ROWS = [
    (NAME, "verified", "-", "val_loss 0.5048, psnr_db 20.5, dice 0.91", "47f769376547"),
    ("seg", "failed", "-", "-", "47f769376547"),
]


def made(width, rows=ROWS, heads=HEADS, first_to_go=(4,)):
    return narrow_table(heads, rows, width, names=(0,), first_to_go=first_to_go, mark="…")


def test_where_there_is_room_all_is_as_it_was():
    found = made(200)
    assert found.kept == (0, 1, 2, 3, 4) and list(found.rows) == ROWS


def test_a_column_that_says_nothing_goes_first():
    assert made(111).kept == (0, 1, 3, 4)
    assert made(111).rows[0][0] == NAME


def test_then_those_that_may_and_a_name_ends_as_it_does():
    found = made(60)
    assert found.kept == (0, 1, 3)
    assert found.rows[0][0].startswith("abl") and found.rows[0][0].endswith("_q1_seed1")
    assert "…" in found.rows[0][0]


def test_what_may_not_go_stays_however_narrow_it_is():
    assert made(20).kept == (0, 1, 3)


def test_many_columns_that_may_not_go_still_fit():
    heads = ("cell", "a", "b", "c", "d")
    rows = [(NAME, *(["some words that fold anywhere"] * 4))]
    found = made(70, rows, heads, ())
    assert sum(found.widths) + 8 <= 70 and width_in_cells(found.rows[0][0]) <= found.widths[0]


@pytest.mark.parametrize("width", range(58, 130))
def test_it_fits(width):
    found = made(width)
    assert sum(found.widths) + 2 * (len(found.kept) - 1) <= width
    assert all(width_in_cells(row[0]) <= found.widths[0] for row in found.rows)


def test_chinese_names_are_measured_as_they_are_shown():
    rows = [("消融_去掉跳连_很长的名字_种子一_再长一些", "已验证", "x" * 60)]
    found = made(60, rows, ("cell", "state", "metric"), ())
    assert width_in_cells(found.rows[0][0]) <= found.widths[0] and found.rows[0][0].endswith("些")
