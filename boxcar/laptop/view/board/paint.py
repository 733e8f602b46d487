"""The board's lines as rich draws them: the only place that knows what a look looks like."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from boxcar.laptop.view.board.terminal_lines import BAD, BOLD, BUSY, CHOSEN, DIM, GOOD, WARN, Line

# The terminal's own colours: each theme has made them readable on its ground.
_STYLES = {
    GOOD: Style(color="green"),
    BUSY: Style(color="cyan"),
    BAD: Style(color="red", bold=True),
    WARN: Style(color="yellow"),
    BOLD: Style(bold=True),
    DIM: Style(dim=True),
    CHOSEN: Style(reverse=True),
}


def painted(line: Line) -> Text:
    text = Text(no_wrap=True, overflow="crop", end="")
    for span in line:
        text.append(
            span.text, Style.chain(Style.null(), *(_STYLES[look] for look in span.look.split()))
        )
    return text


def page(lines: Sequence[Line]) -> Text:
    """All of them, without a line end after the last."""
    return Text("\n", end="").join(painted(line) for line in lines)
