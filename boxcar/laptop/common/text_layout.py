"""How text fits the width of a terminal: lines broken between words, tables that give way, names
cut in their middle. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest

from boxcar.shared.record import dataclass
from boxcar.shared.text_width import as_much_as_fits, is_wide, short_name, width_in_cells

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
    return is_wide(before) or is_wide(behind)


def _shown(line: str) -> str:
    return line.replace(_KEPT, " ").rstrip(" ")


def fold_text(text: str, room: int, mark: str = "") -> list[str]:
    """The same, and none is wider: a command is broken at its blanks, and a word is shortened in
    its middle, or without a mark broken anywhere, as is a URL.
    """
    return [part for line in wrap_text(text, room) for part in _broken(line, room, mark)]


def _broken(line: str, room: int, mark: str) -> list[str]:
    if width_in_cells(line) <= room:
        return [line]
    lines = [""]
    for word in line.split(" "):
        gap = " " if lines[-1] else ""
        if width_in_cells(lines[-1] + gap + word) <= room:
            lines[-1] += gap + word
            continue
        is_cut = mark and "://" not in word  # half an address leads nowhere
        pieces = [short_name(word, room, mark)] if is_cut else [*_pieces_of(word, max(1, room))]
        lines += pieces if lines[-1] else [*lines.pop(), *pieces]
    return lines


def _pieces_of(word: str, room: int) -> Iterator[str]:
    while word:
        piece = as_much_as_fits(word, room) or word[0]
        yield piece
        word = word[len(piece) :]


# Columns that share a width: all tables do it by this, and the board.


GAP = 2
NOTHING = "-"
# A name is cut down to so many columns, and other text folds from so many on; where that is still
# too much, from these on.
_LEAST, _LEAST_OF_ALL = (24, 20), (16, 8)
# A number, a date, a digest: what begins with a digit is whole, or its column is left out. So is a
# word that is no longer than this.
_NUMBER = re.compile(r"[(\[<>~≈+−±-]*\d.*")
_UNIT, _WORD_MOST = 3, 20


def fit_columns(
    natural: Sequence[int], least: Sequence[int], to_go: Iterable[int], room: int
) -> dict[int, int]:
    """The width of each column that stays, by its number; one of 0 is not there at all. Of `to_go`
    one after the other is left out while the least widths have no room. Then the widest gives
    first, so that no name is cut while a text has more room than it.
    """
    widths = {at: width for at, width in enumerate(natural) if width}
    for at in to_go:
        if len(widths) > 1 and at in widths and taken(least[one] for one in widths) > room:
            del widths[at]
    for _turn in range(taken(widths.values()) - room):
        shrinking = [at for at, width in widths.items() if width > least[at]]
        if not shrinking:
            break
        widths[max(shrinking, key=lambda at: widths[at])] -= 1
    return widths if len(widths) > 1 else {at: min(one, room) for at, one in widths.items()}


def taken(widths: Iterable[int]) -> int:
    """By columns of these widths, with the gaps between them."""
    return sum(width + GAP for width in widths) - GAP


def narrow_table(
    columns: Sequence[Sequence[str]],
    room: int,
    *,
    names: Collection[int],
    first_to_go: Iterable[int],
    mark: str,
) -> dict[int, list[str]]:
    """The columns that stay, by their number, each a head and its fields in lines that fit.

    `names` are shortened in their middle, numbers are whole, other text folds between its words. Of
    `first_to_go` one after the other is left out, but first of all one in which nothing is said;
    those at the right, where all the others are as narrow as can be.
    """
    natural = [max(map(_width, map(_lines_of, column))) for column in columns]
    if taken(natural) > room:
        is_said = [{*column[1:]} != {NOTHING} for column in columns]
        natural = [min(one, room) * said for one, said in zip(natural, is_said, strict=True)]
    to_go = first_to_go
    for name, text in (_LEAST, _LEAST_OF_ALL):
        least = [
            min(one, name if at in names else max(text, _unbroken(columns[at])))
            for at, one in enumerate(natural)
        ]
        widths = fit_columns(natural, least, to_go, room)
        if taken(widths.values()) <= room:
            break
        natural = [widths.get(at, 0) for at in range(len(columns))]
        to_go = range(len(columns) - 1, 0, -1)
    return {
        at: [_fitted(field, width, mark, at in names) for field in columns[at]]
        for at, width in widths.items()
    }


def _unbroken(column: Sequence[str]) -> int:
    """How wide it has to be for its numbers and shorter words."""
    fields = [field for field in column[1:] if field != NOTHING]
    if fields and all(map(_is_number, fields)):
        return max(map(width_in_cells, fields))
    widths = (
        width if (width := width_in_cells(word)) <= _WORD_MOST or _NUMBER.fullmatch(word) else 0
        for field in column
        for word in field.split()
    )
    return max(widths, default=0)


def _is_number(field: str) -> bool:
    """`0.87`, `0.8735±0.0094 [0.8, 0.9]`, `12.3 GB`."""
    words = field.split()
    return bool(words and _NUMBER.fullmatch(words[0])) and all(
        len(word) <= _UNIT or _NUMBER.fullmatch(word) for word in words
    )


def _fitted(field: str, room: int, mark: str, is_name: bool) -> str:
    if is_name:
        return short_name(field, room, mark)
    return "\n".join(fold_text(field.expandtabs(_TAB_COLUMNS), room, mark))


# The lines of a table, columns two spaces apart: in a pipe one for each row.
#
# As rich would draw it without an edge, at a thirtieth of what that costs: a run may have a hundred
# thousand rows.


_BETWEEN = "  "
_TAB_COLUMNS = 8


def table_rows(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """The text of each row, without spaces at its end; a field of several lines takes as many. A
    column begins with its head.
    """
    if all(map(_is_plain, columns)):
        # A column at a time, which the interpreter walks by itself.
        widths = [max(1, *map(len, column)) for column in columns]
        padded = [_padded(column, width) for column, width in zip(columns, widths, strict=True)]
        yield from (_BETWEEN.join(row).rstrip() for row in zip(*padded, strict=True))
        return
    whole = [[_lines_of(field) for field in column] for column in columns]
    widths = [max(1, *map(_width, column)) for column in whole]
    for row in zip(*whole, strict=True):
        lines = zip_longest(*row, fillvalue="")
        yield "\n".join(_line(fields, widths) for fields in lines)


def _is_plain(column: Sequence[str]) -> bool:
    """Whether each field is one line, and each character of it one column wide."""
    text = "".join(column)
    return text.isascii() and "\n" not in text and "\t" not in text


def _padded(column: Sequence[str], width: int) -> list[str]:
    return [text.ljust(width) for text in column]


def _lines_of(field: str) -> list[str]:
    return field.expandtabs(_TAB_COLUMNS).split("\n") if "\n" in field or "\t" in field else [field]


def _width(field: Sequence[str]) -> int:
    return max(map(width_in_cells, field))


def _line(fields: Sequence[str], widths: Sequence[int]) -> str:
    gaps = (" " * (width - width_in_cells(one)) for one, width in zip(fields, widths, strict=True))
    return _BETWEEN.join(map(str.__add__, fields, gaps)).rstrip()


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
