"""A table for a program that reads it: one line for each row, columns two spaces apart.

As rich would draw it without an edge, at a thirtieth of what that costs: a run may have a hundred
thousand rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

_BETWEEN = "  "
_TAB_COLUMNS = 8


def table_for_pipe(title: str, columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines, each without spaces at its end; a field of several lines takes as many. A column
    begins with its head.
    """
    if all(map(_is_plain, columns)):
        # A column at a time, which the interpreter walks by itself.
        widths = [max(1, *map(len, column)) for column in columns]
        yield _cut(title, _room(widths)).rstrip()
        padded = [_padded(column, width) for column, width in zip(columns, widths, strict=True)]
        yield from (_BETWEEN.join(row).rstrip() for row in zip(*padded, strict=True))
        return
    whole = [[_lines_of(field) for field in column] for column in columns]
    widths = [max(1, *map(_width, column)) for column in whole]
    yield _cut(title, _room(widths)).rstrip()
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


def _room(widths: Sequence[int]) -> int:
    return sum(widths) + len(_BETWEEN) * (len(widths) - 1)


def _lines_of(field: str) -> list[str]:
    return field.expandtabs(_TAB_COLUMNS).split("\n") if "\n" in field or "\t" in field else [field]


def _width(field: Sequence[str]) -> int:
    return max(map(_columns, field))


def _columns(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def _line(fields: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        text + " " * (width - _columns(text)) for text, width in zip(fields, widths, strict=True)
    )
    return _BETWEEN.join(padded).rstrip()


def _cut(title: str, room: int) -> str:
    if _columns(title) <= room:
        return title
    kept = title
    while _columns(kept) > room - 1:
        kept = kept[:-1]
    return f"{kept}…"
