from __future__ import annotations

import pytest
from rich.console import Console

from boxcar.laptop.common import show, text_layout

HEADS = ("cell", "", "漢")
TABLES = [
    [("a", "-", "0.5"), ("a longer one", "漢字", "-")],
    [("  lead", "trail  ", "[b]m[/b]"), ("", "é", "x")],
    [("one\ntwo", "-", "x"), ("a", "", "long " * 40)],
    [("plain", "-", "0.5"), ("", "  both  ", "x")],
]


@pytest.mark.parametrize("rows", TABLES)
@pytest.mark.parametrize("heads", [HEADS, ("cell", "", "state")])
@pytest.mark.parametrize("title", ["T", "a title that is longer than some of the tables below it"])
def test_it_is_what_rich_draws(
    title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]
) -> None:
    console = Console(width=1_000_000)
    with console.capture() as drawn:
        console.print(title, show.draw(heads, rows), sep="\n")
    expected = [line.rstrip() for line in drawn.get().splitlines()]
    columns = [*zip(heads, *([show._field(value) for value in row] for row in rows), strict=True)]
    assert list(text_layout.table_for_pipe(title, columns)) == expected


def test_a_tab_never_breaks_a_row() -> None:
    assert list(text_layout.table_for_pipe("T", [["a", "x\ty"], ["b", "z"]]))[2] == "x       y  z"


def test_a_table_that_is_narrower_than_its_title_does_not_cut_it() -> None:
    title = "demo: test messages from the laptop"
    assert next(text_layout.table_for_pipe(title, [["endpoint", "ntfy"]])) == title
