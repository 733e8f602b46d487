"""A line of the board before it is drawn: spans of text, each with words for how it looks.

Widths are those of a terminal: a Chinese letter is two columns wide, a combining mark none.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, chop_cells, set_cell_size

from boxcar.laptop.common import text_layout
from boxcar.laptop.common.text_layout import plain
from boxcar.shared.record import dataclass

# How a span may look. A terminal's own 16 colours, so that each theme stays readable; never alone.
GOOD, BUSY, BAD, WARN = "good", "busy", "bad", "warn"
BOLD, DIM, CHOSEN = "bold", "dim", "chosen"


@dataclass(frozen=True)
class Span:
    """`look` is any of the words above, with a space between two."""

    text: str
    look: str = ""


Line = tuple[Span, ...]


def span(text: str, look: str = "") -> Span:
    """Of other people's words too: nothing in it can drive the terminal or end the line."""
    return Span(" ".join(plain(text).split("\n")).replace("\t", " "), look)


def width(line: Iterable[Span]) -> int:
    return sum(cell_len(one.text) for one in line)


def text(line: Iterable[Span]) -> str:
    return "".join(one.text for one in line)


def cut(line: Line, room: int, mark: str) -> Line:
    """At most `room` columns of it; `mark` stands where something was cut off."""
    if width(line) <= room:
        return line
    kept: list[Span] = []
    left = room - cell_len(mark)
    for one in line:
        if cell_len(one.text) >= left:
            kept.append(Span(set_cell_size(one.text, max(0, left)).rstrip() + mark, one.look))
            break
        kept.append(one)
        left -= cell_len(one.text)
    return tuple(kept) if room >= cell_len(mark) else ()


def pad(line: Line, room: int, *, is_right: bool = False) -> Line:
    """As wide as `room`, with blanks; to the right where `is_right`."""
    blank = Span(" " * max(0, room - width(line)))
    if not blank.text:
        return line
    return (blank, *line) if is_right else (*line, blank)


def mark_chosen(line: Line, room: int) -> Line:
    """The line under the cursor, to the edge."""
    return tuple(Span(one.text, f"{one.look} {CHOSEN}".strip()) for one in pad(line, room))


def stripped(line: Line) -> Line:
    """Without blanks at its end."""
    spans = list(line)
    while spans and not spans[-1].text.strip(" "):
        spans.pop()
    return (*spans[:-1], Span(spans[-1].text.rstrip(" "), spans[-1].look)) if spans else ()


def spread(left: Line, right: Line, room: int, mark: str) -> Line:
    """One at each edge; where both have no room, only what stands at the left."""
    gap = room - width(left) - width(right)
    if gap < 2 or not right:
        return cut(left, room, mark)
    return (*left, Span(" " * gap), *right)


def wrapped(words: str, room: int, most: int, mark: str) -> list[str]:
    """The text on at most `most` lines; a command that is wider than a line is broken as well."""
    lines = [part for line in text_layout.wrap_text(words, room) for part in _broken(line, room)]
    if len(lines) > most:
        rest = cut((Span(" ".join(lines[most - 1 :])),), room, mark)
        lines = [*lines[: most - 1], text(rest)]
    return lines


def _broken(words: str, room: int) -> list[str]:
    lines = [""]
    for part in words.split(" ") if cell_len(words) > room else [words]:
        gap = " " if lines[-1] else ""
        if cell_len(lines[-1] + gap + part) <= room:
            lines[-1] += gap + part
            continue
        whole = chop_cells(part, max(1, room)) or [""]
        lines += whole if lines[-1] else [*lines.pop(), *whole]
    return lines
