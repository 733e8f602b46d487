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
    group gets at each turn.
    """

    top: tuple[Line, ...]
    rows: Sequence[T]
    draw: Callable[[Sequence[T]], list[Line]]
    fold: Callable[[int], Line]
    share: int
    most: int = ALL
    has_head: bool = False

    @property
    def wanted(self) -> int:
        """The lines that it would fill."""
        shown = min(len(self.rows), self.most)
        return self._above + shown + bool(self.fold(len(self.rows) - shown))

    @property
    def _above(self) -> int:
        return len(self.top) + (self.has_head and bool(self.rows))

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
        return [*self.top, *self.draw(self.rows[:shown]), *last]


def shares(groups: Sequence[Group[T]], room: int) -> list[int]:
    """The lines of each group: those before others get theirs first, and at each turn their share
    of what is left.
    """
    given = [0] * len(groups)
    wanted = [group.wanted for group in groups]
    for at, want in enumerate(wanted):
        given[at] = min(1, want, room - sum(given))
    while (left := room - sum(given)) > 0:
        if given == wanted:
            break
        for at, group in enumerate(groups):
            more = min(group.share, wanted[at] - given[at], left)
            given[at] += more
            left -= more
    return given
