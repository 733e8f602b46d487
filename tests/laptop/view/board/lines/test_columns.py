from __future__ import annotations

from boxcar.laptop.view.board.terminal_lines import fit_rows, styled
from boxcar.laptop.view.run_fields import Column

COLUMNS = (
    Column("cell", keep=9, least=8, is_name=True),
    Column("why", keep=5, least=10),
    Column("time", keep=1, is_right=True),
)
TITLES = [styled("cell"), styled("why"), styled("time")]
ROWS = [
    (styled("recon_no_skip_seed1"), styled("M2 CUDA out of memory"), styled("31s")),
    (styled("seg"), styled("磁盘已满"), styled("1m02s")),
]


def drawn(room: int) -> list[str]:
    return [line.plain for [line] in fit_rows(COLUMNS, ROWS, room, "…", TITLES)]


def test_where_there_is_room_all_is_shown_in_straight_columns() -> None:
    head, first, second = drawn(60)
    assert first == "recon_no_skip_seed1  M2 CUDA out of memory    31s"
    assert head.index("why") == first.index("M2")
    assert second.startswith("seg                  磁盘已满 ")


def test_the_least_column_drops_before_a_name_is_shortened_too_far() -> None:
    _, first, _ = drawn(20)
    assert first == "re…seed1  M2 CUDA o…"
    assert "31s" not in first


def test_no_line_is_ever_wider_than_its_room() -> None:
    for room in range(1, 70):
        lines = [line for [line] in fit_rows(COLUMNS, ROWS, room, "…", TITLES)]
        assert max(line.cell_len for line in lines) <= room


def test_a_column_without_anything_to_say_is_left_out() -> None:
    rows = [(styled("a"), styled(""), styled("1s"))]
    assert fit_rows(COLUMNS, rows, 40, "…")[0][0].plain == "a  1s"


def test_numbers_that_have_no_room_leave_theirs_to_the_name() -> None:
    columns = [
        Column("cell", keep=8, least=10, is_name=True),
        Column("numbers", keep=3, least=10, are_numbers=True),
    ]
    rows = [[styled("train_lr0.003"), styled("accuracy 0.3061 (best 0.4266)")]]
    assert fit_rows(columns, rows, 24, "…")[0][0].plain == "train_lr0.003"
    assert "best" in fit_rows(columns, rows, 80, "…")[0][0].plain
