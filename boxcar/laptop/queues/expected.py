"""How much a plan is: its cells, its boxes, and about how long they take. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from boxcar.laptop.queues import cell_cost
from boxcar.laptop.queues.cell_cost import SECONDS, Sample
from boxcar.shared.files.plan import Cell
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Expected:
    """`seconds` until the last queue ends, all running at once; None where nothing is known."""

    cells: int
    boxes: int
    seconds: float | None


def expected_time(
    cells: Sequence[Cell], queues: Mapping[str, str], measured: Iterable[Sample]
) -> Expected:
    """`queues` names the box of each. What earlier runs took is all that a time is taken from."""
    costs, unit = cell_cost.costs_of_cells(cells, measured, {}, {})
    takes_s: dict[str, float] = defaultdict(float)
    for cell in cells:
        takes_s[cell.queue] += costs[cell.name].amount
    seconds = max(takes_s.values()) if unit == SECONDS and takes_s else None
    return Expected(len(cells), len({queues[cell.queue] for cell in cells}), seconds)
