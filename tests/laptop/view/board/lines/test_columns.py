from __future__ import annotations

from boxcar.laptop.view.board.terminal_lines import Span, fit_rows, text, width
from boxcar.laptop.view.run_fields import Column

COLUMNS = (
    Column("cell", keep=9, least=8, is_name=True),
    Column("why", keep=5, least=10),
    Column("time", keep=1, is_right=True),
)
TITLES = [(Span("cell"),), (Span("why"),), (Span("time"),)]
ROWS = [
    ((Span("recon_no_skip_seed1"),), (Span("M2 CUDA out of memory"),), (Span("31s"),)),
    ((Span("seg"),), (Span("磁盘已满"),), (Span("1m02s"),)),
]


def drawn(room: int) -> list[str]:
    return [text(line) for [line] in fit_rows(COLUMNS, ROWS, room, "…", TITLES)]


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
        assert max(map(width, lines)) <= room


def test_a_column_without_anything_to_say_is_left_out() -> None:
    rows = [((Span("a"),), (), (Span("1s"),))]
    assert text(fit_rows(COLUMNS, rows, 40, "…")[0][0]) == "a  1s"
