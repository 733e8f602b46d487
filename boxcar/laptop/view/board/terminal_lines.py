"""A line of the board before it is drawn: spans of text, each with words for how it looks.

Widths are those of a terminal: a Chinese letter is two columns wide, a combining mark none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, Generic, TypeVar

from rich.cells import cell_len, chop_cells, set_cell_size

from boxcar.laptop.common import text_layout
from boxcar.laptop.common.text_layout import plain, short_name
from boxcar.shared.catalogue.board import condition_sentence
from boxcar.shared.catalogue.sentence import Sentence, in_language
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


# Columns of a table that share the width of a terminal: some shrink, the others drop. Pure.


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


# The signs of the board: one for each state of a cell, and what lines are drawn with.
#
# A sign stands beside its word or below the title of its group, so no state is told by colour
# alone.


@dataclass(frozen=True)
class Glyphs:
    verified: str = "✓"
    running: str = "▶"
    failed: str = "✗"
    queued: str = "·"
    trouble: str = "!"
    dropped: str = "–"
    between: str = "·"
    rule: str = "─"
    mark: str = "…"  # where something was cut
    levels: str = "▁▂▃▄▅▆▇█"


# For a terminal that cannot show the others: the console of Linux, or an encoding without them.
ASCII = Glyphs("+", ">", "x", ".", "!", "-", "|", "-", "~", "_.-:=*#@")
UNICODE = Glyphs()

# Of each state's word: the attribute of Glyphs, and the look.
_STATES = {
    "verified": ("verified", GOOD),
    "running": ("running", BUSY),
    "claimed": ("running", BUSY),
    "succeeded": ("running", BUSY),
    "synced": ("running", BUSY),
    "retrying": ("trouble", WARN),
    "preempted": ("queued", WARN),
    "failed": ("failed", BAD),
    "damaged": ("failed", BAD),
    "unknown": ("trouble", WARN),
    "dropped": ("dropped", DIM),
    "queued": ("queued", DIM),
}


def glyphs_of_terminal(encoding: str | None, environ: Mapping[str, str]) -> Glyphs:
    """What a terminal of this encoding can show."""
    try:
        "".join((*vars(UNICODE).values(),)).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return ASCII if environ.get("TERM") == "linux" else UNICODE


def state_glyph(word: str, glyphs: Glyphs) -> tuple[str, str]:
    """The sign of a cell's state, and its look."""
    name, look = _STATES.get(word, ("trouble", WARN))
    return getattr(glyphs, name), look


# A row of small bars for what was measured. Pure.
#
# A place without a measurement is blank, and fewer than two make no row at all: what nobody has
# seen must not look like a flat line.


Sample = tuple[float, float]  # seconds before now, and the value


def over_time(samples: Sequence[Sample], span_s: float, bars: int) -> list[float | None]:
    """The mean of each of `bars` equal parts of the last `span_s` seconds, the newest last."""
    sums, counts = [0.0] * bars, [0] * bars
    for ago_s, value in samples:
        place = bars - 1 - int(ago_s / span_s * bars)
        if 0 <= place < bars and isfinite(value):
            sums[place] += value
            counts[place] += 1
    return [total / n if n else None for total, n in zip(sums, counts, strict=True)]


def in_order(values: Sequence[float], bars: int) -> list[float | None]:
    """The newest last; of more than `bars` values each bar is the mean of some neighbours."""
    found = [value for value in values if isfinite(value)]
    if len(found) <= bars:
        return list(found)
    edges = [round(place * len(found) / bars) for place in range(bars + 1)]
    parts = [found[a:b] for a, b in pairwise(edges)]
    return [sum(part) / len(part) for part in parts]


def sparkline(
    values: Sequence[float | None], levels: str, low: float | None = None, high: float | None = None
) -> str:
    """The bars, between `low` and `high`, or between the least and the greatest of them."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    bottom = min(known) if low is None else low
    top = max(known) if high is None else high
    return "".join(_bar(value, bottom, top, levels) for value in values)


def _bar(value: float | None, bottom: float, top: float, levels: str) -> str:
    if value is None:
        return " "
    part = (value - bottom) / (top - bottom) if top > bottom else 0.0
    return levels[min(len(levels) - 1, max(0, int(part * len(levels))))]


# The board's sentences, in the language of who reads it.


def word(name: str, language: str, /, **fields: Any) -> str:
    """`board.NAME` of the catalogue. Raises KeyError for one that is not there."""
    return Sentence(f"board.{name}", **fields).said(language)


def condition_word(condition: str, language: str) -> str:
    """What is the matter with a queue; a word of a newer version stays as it is."""
    return str(in_language(condition_sentence(condition), language))


# Groups of rows that share the height of a terminal. Pure.


T = TypeVar("T")
ALL = 1_000_000


@dataclass(frozen=True)
class Group(Generic[T]):
    """`top` stands above the rows, whatever else has room. `draw` makes lines of rows, with one
    more for a head where `has_head`. `fold` makes the line for those that have no room; it is asked
    for 0 too, and may have something to say. `most` rows are wanted; `share` is how many lines the
    group gets at each turn. The row at `chosen` is among those that are shown.
    """

    top: tuple[Line, ...]
    rows: Sequence[T]
    draw: Callable[[Sequence[T]], list[Line]]
    fold: Callable[[int], Line]
    share: int
    most: int = ALL
    has_head: bool = False
    chosen: int = 0

    @property
    def wanted(self) -> int:
        """The lines that it would fill."""
        shown = min(len(self.rows), self.most)
        return self._above + shown + bool(self.fold(len(self.rows) - shown))

    @property
    def _above(self) -> int:
        return len(self.top) + (self.has_head and bool(self.rows))

    def filled(self, room: int) -> int:
        """How many of so many lines it has something for."""
        if self.wanted <= room:
            return self.wanted
        return room if room > self._above + 1 else min(1, room)

    def lines(self, room: int) -> list[Line]:
        """At most `room` lines, of which one says how many rows are left out."""
        if room <= 0:
            return []
        shown = min(len(self.rows), self.most)
        if self.wanted > room:
            shown = max(0, room - self._above - 1)
        fold = self.fold(len(self.rows) - shown)
        last = [fold] if fold else []
        if not shown:
            return last
        start = max(0, min(self.chosen - shown + 1, len(self.rows) - shown))
        return [*self.top, *self.draw(self.rows[start : start + shown]), *last]


def shares(groups: Sequence[Group[T]], room: int) -> list[int]:
    """The lines of each group. The first one gets up to half of them at once; of the others each
    gets one, and then at each turn its share of what is left.
    """
    wanted = [group.wanted for group in groups]
    given = [0] * len(groups)
    for at, want in enumerate(wanted):
        given[at] = min(1 if at else max(1, room // 2), want, room - sum(given))
    while (left := room - sum(given)) > 0 and given != wanted:
        for at, group in enumerate(groups):
            more = min(group.share, wanted[at] - given[at], left)
            given[at] += more
            left -= more
    return _without_waste(groups, given, wanted)


def _without_waste(
    groups: Sequence[Group[T]], given: Sequence[int], wanted: Sequence[int]
) -> list[int]:
    """What a group cannot fill, because a title alone says nothing, goes to those before it."""
    filled = [group.filled(lines) for group, lines in zip(groups, given, strict=True)]
    left = sum(given) - sum(filled)
    for at, lines in enumerate(filled):
        more = min(left, wanted[at] - lines) if lines > 1 else 0
        filled[at] += more
        left -= more
    return filled
