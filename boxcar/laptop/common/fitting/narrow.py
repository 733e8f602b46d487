"""What gives way where a table is wider than its terminal, so that no name breaks. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from boxcar.laptop.common.fitting.short_name import short_name
from boxcar.laptop.common.fitting.wrap import width_in_cells
from boxcar.shared.record import dataclass

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
    natural = [max(map(width_in_cells, (head, *column))) for head, *column in zip(heads, *rows, strict=True)]

    def at_least(name: int, text: int) -> list[int]:
        return [min(width, name if at in names else text) for at, width in enumerate(natural)]

    least = at_least(_NAME_LEAST, _TEXT_LEAST)
    kept = list(range(len(heads)))
    if _needed(natural, kept) > width:
        kept = [at for at in kept if any(row[at] != NOTHING for row in rows)]
    for at in first_to_go:
        if at in kept and _needed(least, kept) > width:
            kept.remove(at)
    least = least if _needed(least, kept) <= width else at_least(_NAME_MIN, _TEXT_MIN)
    widths = _shrunk(natural, least, kept, width)
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


def _needed(widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(widths[at] for at in kept) + GAP * (len(kept) - 1)


def _shrunk(
    natural: Sequence[int], least: Sequence[int], kept: Sequence[int], width: int
) -> list[int]:
    """The widest gives first, so that no name is cut while a text has more room than it."""
    widths = {at: natural[at] for at in kept}
    for _ in range(_needed(natural, kept) - width):
        shrinking = [at for at in kept if widths[at] > least[at]]
        if not shrinking:
            break
        widths[max(shrinking, key=lambda at: widths[at])] -= 1
    return [widths[at] for at in kept]
