from __future__ import annotations

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from boxcar.laptop.common.text_layout import table_rows

HEADS = ("cell", "", "漢")
TABLES = [
    [("a", "-", "0.5"), ("a longer one", "漢字", "-")],
    [("  lead", "trail  ", "[b]m[/b]"), ("", "é", "x")],
    [("one\ntwo", "-", "x"), ("a", "", "long " * 40)],
    [("plain", "-", "0.5"), ("", "  both  ", "x")],
]


@pytest.mark.parametrize("rows", TABLES)
@pytest.mark.parametrize("heads", [HEADS, ("cell", "", "state")])
def test_it_is_what_rich_draws(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = Table(pad_edge=False, box=None)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(width=1_000_000)
    with console.capture() as drawn:
        console.print(table)
    expected = [line.rstrip() for line in drawn.get().splitlines()]
    found = "\n".join(table_rows([*zip(heads, *rows, strict=True)]))
    assert found.split("\n") == expected


def test_a_tab_never_breaks_a_row() -> None:
    assert [*table_rows([["a", "x\ty"], ["b", "z"]])][1] == "x       y  z"
