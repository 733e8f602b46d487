"""Columns of a table that share the width of a terminal: some shrink, the others drop. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.laptop.board.lines.line import DIM, Line, Span, cut, pad, width
from boxcar.laptop.common.text_layout import short_name
from boxcar.shared.record import dataclass

GAP = 2


@dataclass(frozen=True)
class Column:
    """`keep` is how late it drops: the column with the least goes first. A column shrinks down to
    `least` columns where that is given; a name in its middle, other text at its end.
    """

    title: str
    keep: int
    least: int | None = None
    is_name: bool = False
    is_right: bool = False


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Line]],
    room: int,
    mark: str,
    *,
    has_head: bool = False,
) -> list[Line]:
    """The rows as lines of at most `room` columns, below the titles where `has_head`."""
    heads = [(Span(column.title, DIM),) if has_head else () for column in columns]
    full = [heads, *rows] if has_head else [*rows]
    natural = [max((width(row[at]) for row in full), default=0) for at in range(len(columns))]
    said = [at for at in range(len(columns)) if any(width(row[at]) for row in rows)]
    widths = _fitted(columns, said, natural, room)
    return [_drawn(columns, row, widths, mark) for row in full]


def _fitted(
    columns: Sequence[Column], said: Sequence[int], natural: Sequence[int], room: int
) -> dict[int, int]:
    """The width of each column that stays."""
    kept = list(said)
    while len(kept) > 1 and _needed(columns, kept, natural) > room:
        kept.remove(min(kept, key=lambda at: columns[at].keep))
    widths = {at: natural[at] for at in kept}
    over = sum(widths.values()) + GAP * (len(kept) - 1) - room
    # The widest gives first, so that no name is cut while another text has more room than it.
    while over > 0:
        shrinking = [at for at in kept if widths[at] > _least(columns[at], natural[at])]
        if not shrinking:
            break
        widths[max(shrinking, key=lambda at: widths[at])] -= 1
        over -= 1
    if over > 0:
        widths[kept[0]] = max(0, room)
    return widths


def _needed(columns: Sequence[Column], kept: Sequence[int], natural: Sequence[int]) -> int:
    return sum(_least(columns[at], natural[at]) for at in kept) + GAP * (len(kept) - 1)


def _least(column: Column, natural: int) -> int:
    return natural if column.least is None else min(natural, column.least)


def _drawn(
    columns: Sequence[Column], row: Sequence[Line], widths: dict[int, int], mark: str
) -> Line:
    spans: list[Span] = []
    for at, room in widths.items():
        spans += [Span(" " * GAP)] if spans else []
        fitted = _fit(columns[at], row[at], room, mark)
        spans += pad(fitted, room, is_right=columns[at].is_right)
    return tuple(spans)


def _fit(column: Column, line: Line, room: int, mark: str) -> Line:
    if width(line) <= room:
        return line
    if column.is_name and line:
        *before, last = line
        left = room - width(before)
        return (*before, Span(short_name(last.text, left, mark), last.look))
    return cut(line, room, mark)
