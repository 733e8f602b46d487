"""How text fits the width of a terminal: lines broken between words, tables that give way, names
cut in their middle. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence

from boxcar.shared.record import dataclass

# Text in lines that fit, broken between words; what a person copies stays in one piece.


# As people type them: a verb of ours with its flags and their values, and what stands behind
# `type:` up to the end of the line.
_COMMAND = re.compile(
    r"(?:\S*/)?\b(?:boxcar|invoke) [a-z][a-z-]*(?: --?[a-z][a-z-]*(?:[= ](?:'[^'\n]*'|[^\s'(]+))?)*"
    r"|(?<=[Tt]ype: ).+|(?<=by hand: ).+"
)
# Stands for a blank within such a piece; what is shown holds no control characters.
_KEPT = "\0"
_WORD = re.compile(r" *[^ ]+")
# A line begins with none of these, and ends with none of those.
_CLOSING, _OPENING = "，。、；：！？）》」』”’…", "（《「『“‘"


def wrap_text(text: str, width: int) -> list[str]:
    """Each line of `text` in one or more, none wider than `width` cells but for a single word."""
    return [part for line in text.split("\n") for part in _lines(line, width)]


def _lines(line: str, width: int) -> Iterator[str]:
    if width_in_cells(line) <= width:
        yield line
        return
    kept = _COMMAND.sub(lambda found: found[0].replace(" ", _KEPT), line)
    indent = line[: len(line) - len(line.lstrip(" "))]
    now = ""
    for piece in _pieces(kept):
        if now.strip() and width_in_cells(now) + width_in_cells(piece) > width:
            yield _shown(now)
            now = indent + piece.lstrip(" ")
        else:
            now += piece
    yield _shown(now)


def _pieces(line: str) -> Iterator[str]:
    """Words with the blanks before them; Chinese may be broken behind each sign."""
    for found in _WORD.finditer(line):
        begin = 0
        word = found[0]
        for at in range(1, len(word)):
            if _may_break(word[at - 1], word[at]):
                yield word[begin:at]
                begin = at
        yield word[begin:]


def _may_break(before: str, behind: str) -> bool:
    if behind in _CLOSING or before in _OPENING or before == " ":
        return False
    return _is_wide(before) or _is_wide(behind)


def _shown(line: str) -> str:
    return line.replace(_KEPT, " ").rstrip(" ")


def width_in_cells(text: str) -> int:
    """How many columns of a terminal it takes."""
    return sum(2 if _is_wide(char) else not unicodedata.combining(char) for char in text)


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


# A name that is too long, shortened in its middle: how it ends is mostly what differs.


ENDS_SHOWN = 2 / 3  # of the room, for the end of the name


def short_name(name: str, room: int, mark: str) -> str:
    """The name in at most `room` columns: `recon_…q1_seed3`."""
    if width_in_cells(name) <= room:
        return name
    left = room - width_in_cells(mark)
    if left <= 0:
        return mark if left == 0 else ""
    end = _end(name, round(left * ENDS_SHOWN))
    return f"{_begin(name, left - width_in_cells(end))}{mark}{end}"


def _begin(name: str, room: int) -> str:
    kept = ""
    for char in name:
        if width_in_cells(kept + char) > room:
            break
        kept += char
    return kept


def _end(name: str, room: int) -> str:
    return _begin(name[::-1], room)[::-1]


GAP = 2
NOTHING = "-"
# Columns of a terminal: a name is cut down to the one, and other text folds from the other on.
_NAME_LEAST, _TEXT_LEAST = 24, 20
# Where that is still too much.
_NAME_MIN, _TEXT_MIN = 16, 8

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Narrow:
    """Which columns stay, by their number, how wide each is, and their rows."""

    kept: tuple[int, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]


def narrow_table(
    heads: Sequence[str],
    rows: Rows,
    width: int,
    *,
    names: Collection[int],
    first_to_go: Sequence[int],
    mark: str,
) -> Narrow:
    """`names` are shortened in their middle; of `first_to_go` one column after the other is left
    out, as is first of all one in which nothing is said.
    """
    natural = [
        max(map(width_in_cells, (head, *column)))
        for head, *column in zip(heads, *rows, strict=True)
    ]

    def at_least(name: int, text: int) -> list[int]:
        return [min(width, name if at in names else text) for at, width in enumerate(natural)]

    least = at_least(_NAME_LEAST, _TEXT_LEAST)
    kept = list(range(len(heads)))
    if needed_width(natural, kept) > width:
        kept = [at for at in kept if any(row[at] != NOTHING for row in rows)]
    for at in first_to_go:
        if at in kept and needed_width(least, kept) > width:
            kept.remove(at)
    least = least if needed_width(least, kept) <= width else at_least(_NAME_MIN, _TEXT_MIN)
    widths = shrink_columns(natural, least, kept, width)
    return Narrow(
        tuple(kept),
        tuple(widths),
        tuple(
            tuple(
                short_name(row[at], room, mark) if at in names else row[at]
                for at, room in zip(kept, widths, strict=True)
            )
            for row in rows
        ),
    )


def needed_width(widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(widths[at] for at in kept) + GAP * (len(kept) - 1)


def shrink_columns(
    natural: Sequence[int], least: Sequence[int], kept: Sequence[int], width: int
) -> list[int]:
    """The widest gives first, so that no name is cut while a text has more room than it."""
    widths = {at: natural[at] for at in kept}
    for _ in range(needed_width(natural, kept) - width):
        shrinking = [at for at in kept if widths[at] > least[at]]
        if not shrinking:
            break
        widths[max(shrinking, key=lambda at: widths[at])] -= 1
    return [widths[at] for at in kept]


# A table for a program that reads it: one line for each row, columns two spaces apart.
#
# As rich would draw it without an edge, at a thirtieth of what that costs: a run may have a hundred
# thousand rows.


_BETWEEN = "  "
_TAB_COLUMNS = 8


def table_for_pipe(title: str, columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines, each without spaces at its end; a field of several lines takes as many. A column
    begins with its head.
    """
    yield title.rstrip()
    if all(map(_is_plain, columns)):
        # A column at a time, which the interpreter walks by itself.
        widths = [max(1, *map(len, column)) for column in columns]
        padded = [_padded(column, width) for column, width in zip(columns, widths, strict=True)]
        yield from (_BETWEEN.join(row).rstrip() for row in zip(*padded, strict=True))
        return
    whole = [[_lines_of(field) for field in column] for column in columns]
    widths = [max(1, *map(_width, column)) for column in whole]
    for row in zip(*whole, strict=True):
        if all(len(field) == 1 for field in row):
            yield _line([field[0] for field in row], widths)
            continue
        for at in range(max(map(len, row))):
            yield _line([field[at] if at < len(field) else "" for field in row], widths)


def _is_plain(column: Sequence[str]) -> bool:
    """Whether each field is one line, and each character of it one column wide."""
    text = "".join(column)
    return text.isascii() and "\n" not in text and "\t" not in text


def _padded(column: Sequence[str], width: int) -> list[str]:
    return [text.ljust(width) for text in column]


def _lines_of(field: str) -> list[str]:
    return field.expandtabs(_TAB_COLUMNS).split("\n") if "\n" in field or "\t" in field else [field]


def _width(field: Sequence[str]) -> int:
    return max(map(_columns, field))


def _columns(text: str) -> int:
    return len(text) if text.isascii() else width_in_cells(text)


def _line(fields: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        text + " " * (width - _columns(text)) for text, width in zip(fields, widths, strict=True)
    )
    return _BETWEEN.join(padded).rstrip()


# Text of others, such as names and logs, as it may go to a terminal.


# Invisible direction marks can make a name read as another one.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def plain(text: str) -> str:
    """Without control characters, so that a name or a log line cannot drive the terminal."""
    if text.isascii() and text.isprintable():  # as nearly all is
        return text
    return "".join(char if is_seen(char) else _spelled(char) for char in text)


def is_seen(char: str) -> bool:
    return char in "\n\t" or unicodedata.category(char) not in _UNSEEN


def _spelled(char: str) -> str:
    return char.encode("unicode_escape").decode()


@dataclass(frozen=True)
class TableView:
    """What stands in a table before it is drawn, as values: whoever shows it spells them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
