"""Which queue gets which new cell: the longest first, to where it ends earliest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from boxcar.laptop.project.project import Project
from boxcar.laptop.project.queue_files import QueueFile
from boxcar.laptop.queues import cell_cost, longest_first
from boxcar.laptop.queues.cell_cost import Sample
from boxcar.shared.cell import said
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import journal
from boxcar.shared.files.plan import Cell
from boxcar.shared.paths import DurablePaths


def queues_of_cells(
    project: Project,
    chosen: Sequence[QueueFile],
    new: Sequence[CellLine],
    samples: Sequence[Sample],
    tier: DurablePaths | None,
) -> dict[str, str]:
    """The queue of each new cell, by its name.

    `samples` are what earlier cells took; `tier` is read where it is within reach.
    """
    cells = [_cell(project, line) for line in new]
    every, _ = cell_cost.costs_of_cells([*project.plan.cells, *cells], samples, {}, {})
    costs = {name: cost.amount for name, cost in every.items()}
    busy = {
        queue.name: sum(costs[name] for name in _waiting(project, queue.name, tier))
        for queue in chosen
    }
    speeds = dict.fromkeys(busy, 1.0)
    spread = longest_first.lines_by_cost({line.name: costs[line.name] for line in new}, speeds, busy)
    return {cell: queue for queue, names in spread.items() for cell in names}


def _cell(project: Project, line: CellLine) -> Cell:
    epochs = said.epochs(project.plan, line) or 1
    return Cell(line.name, line.cfg, line.task, epochs, "", -1, None, line.own, line.overrides)


def _waiting(project: Project, queue: str, tier: DurablePaths | None) -> Iterator[str]:
    """The cells of a queue that have not ended, as far as this machine knows without asking."""
    ended = set[str]()
    # It is only a guess of how long the queue is at work.
    with contextlib.suppress(OSError, DamagedError):
        if tier:
            ended = cell_cost.ended_well(journal.read_journal(tier.journal(queue)).events)
    for cell in project.plan.cells:
        if cell.queue == queue and cell.name not in ended:
            yield cell.name
