"""The board on terminals of 16, 256 and all colours, and of none: the same text on each."""

from __future__ import annotations

import io
import re

import pytest
from big_run import plain_lines, shot
from rich.console import Console

from boxcar.laptop.view.board.focus import Focus
from boxcar.laptop.view.board.layout import layout
from boxcar.laptop.view.board.terminal_lines import paint_lines

_CODE = re.compile(r"\x1b\[([0-9;]*)m")
# The colours of any terminal, with bold, dim and reverse. 38 would begin a colour of 256 or more.
_EVERYWHERE = {"", "0", "1", "2", "7", *map(str, range(30, 38)), *map(str, range(90, 98))}


@pytest.mark.parametrize("colours", ["standard", "256", "truecolor", None])
def test_a_board_says_the_same_on_every_terminal_and_takes_its_own_16_colours(
    colours: str | None,
) -> None:
    lines = layout(shot(36, 3), 80, 24, Focus())
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=80,
        height=24,
        color_system=colours,  # type: ignore[arg-type]
        force_terminal=colours is not None,
        no_color=colours is None,
    )
    console.print(paint_lines(lines), end="")
    drawn = stream.getvalue()
    codes = {part for found in _CODE.findall(drawn) for part in found.split(";")}
    assert codes <= _EVERYWHERE and bool(codes) == (colours is not None)
    assert [line.rstrip() for line in _CODE.sub("", drawn).split("\n")] == [
        line.rstrip() for line in plain_lines(lines)
    ]
