"""Which cells a smoke tries: each of a few, and of a grid one of each kind."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from boxcar.shared.files.plan import Cell

MOST_EACH = 12


def chosen(cells: Sequence[Cell], kinds: Sequence[Hashable]) -> list[Cell]:
    """Each of up to 12; else the first, the last, and the first of each kind, in their order.

    `kinds` are the cells', one for each.
    """
    if len(cells) <= MOST_EACH:
        return list(cells)
    firsts: dict[Hashable, int] = {}
    for at, kind in enumerate(kinds):
        firsts.setdefault(kind, at)
    wanted = {0, len(cells) - 1, *firsts.values()}
    return [cell for at, cell in enumerate(cells) if at in wanted]
