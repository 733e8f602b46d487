"""Groups of rows that share the height of a terminal. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from boxcar.laptop.board.lines.line import Line
from boxcar.shared.record import dataclass

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
