"""What each cell will cost: seconds on a box of speed 1, from what was measured or given. Pure.

A cell that was measured is taken by itself, else by its task, else by all others, always per epoch.
Where nothing is known of any cell, its epochs are its cost.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from boxcar.shared import state
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.plan import Cell
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.state import CellRecord, Succeeded, Synced, Verified

# Which queue takes which cell: the longest goes first, to where it ends earliest. Pure.
#
# Never more than a third longer than the best possible, on boxes of one speed.


# Costs are guesses: for less than this nobody's files are rearranged.
WORTH_IT = 0.02


def lines_by_cost(
    costs: Mapping[str, float],
    speeds: Mapping[str, float],
    busy: Mapping[str, float] | None = None,
) -> dict[str, list[str]]:
    """The cells of each queue, in the order in which they were given out.

    `costs` in any unit, `speeds` above 0; `busy` is how long a queue is at work before these cells.
    The same costs give the same answer in any order.
    """
    queues: dict[str, list[str]] = {queue: [] for queue in speeds}
    busy_until = dict.fromkeys(speeds, 0.0) | dict(busy or {})
    for cell in sorted(costs, key=lambda name: (-costs[name], name)):
        queue = min(speeds, key=lambda name: busy_until[name] + costs[cell] / speeds[name])
        busy_until[queue] += costs[cell] / speeds[queue]
        queues[queue].append(cell)
    return queues


def longest_first(
    queues: Mapping[str, Sequence[str]], costs: Mapping[str, float], speeds: Mapping[str, float]
) -> Mapping[str, Sequence[str]]:
    """The cells of each queue spread anew, or `queues` as they are where that gains too little."""
    anew = lines_by_cost(costs, speeds)
    before, after = time_of_queues(queues, costs, speeds), time_of_queues(anew, costs, speeds)
    return anew if max(after.values()) <= (1 - WORTH_IT) * max(before.values()) else queues


def time_of_queues(
    queues: Mapping[str, Sequence[str]], costs: Mapping[str, float], speeds: Mapping[str, float]
) -> dict[str, float]:
    """How long each queue is at work, in the unit of the costs."""
    return {
        queue: sum(costs[cell] for cell in cells) / speeds[queue] for queue, cells in queues.items()
    }


SECONDS, EPOCHS = "seconds", "epochs"


@dataclass(frozen=True)
class Sample:
    """A cell that ended well: what it took over all its attempts, on which box."""

    cell: str
    task: str
    epochs: int
    seconds: float
    box: str


@dataclass(frozen=True)
class Cost:
    """`source` says where the amount comes from."""

    amount: float
    source: str


def samples(events: Sequence[Event]) -> list[Sample]:
    """What one queue's journal measured. Raises DamagedError."""
    started = {event.cell: event.data for event in events if event.type == "cell.started"}
    return [
        Sample(name, data["task"], data["epochs"], record.seconds, data["box"])
        for name, record in _ended_well(events).items()
        if (data := started.get(name)) and record.seconds > 0
    ]


def ended_well(events: Sequence[Event]) -> set[str]:
    """The cells that cost nothing any more."""
    return set(_ended_well(events))


def _ended_well(events: Sequence[Event]) -> dict[str, CellRecord]:
    return {
        name: record
        for name, record in state.replay(events).cells.items()
        if isinstance(record.state, (Succeeded, Synced, Verified))
    }


def costs_of_cells(
    cells: Sequence[Cell],
    measured: Iterable[Sample],
    speeds: Mapping[str, float],
    given_s: Mapping[str, float],
) -> tuple[dict[str, Cost], str]:
    """The cost of each cell, by name, and the unit of all of them.

    `speeds` are those of the boxes, 1 where one is not named; `given_s` are a cell's seconds by the
    name of the cell or of its task, and come before what was measured.
    """
    rates = [
        (sample.cell, sample.task, sample.seconds * speeds.get(sample.box, 1.0) / sample.epochs)
        for sample in measured
    ]
    given = {cell.name: _given(cell, given_s) for cell in cells}
    rates += [(c.name, c.task, s / c.epochs) for c in cells if (s := given[c.name]) is not None]
    if not rates:
        return {cell.name: Cost(float(cell.epochs), "its epochs") for cell in cells}, EPOCHS
    by_cell = {cell.name: _cost(cell, given[cell.name], rates) for cell in cells}
    return by_cell, SECONDS


def _given(cell: Cell, given_s: Mapping[str, float]) -> float | None:
    return given_s.get(cell.name, given_s.get(cell.task))


def _cost(cell: Cell, given_s: float | None, rates: Sequence[tuple[str, str, float]]) -> Cost:
    if given_s is not None:
        return Cost(given_s, "given")
    own = [rate for name, task, rate in rates if (name, task) == (cell.name, cell.task)]
    alike = [rate for _, task, rate in rates if task == cell.task]
    every = [rate for *_, rate in rates]
    for known, source in ((own, "measured"), (alike, "its task"), (every, "other tasks")):
        if known:
            return Cost(statistics.median(known) * cell.epochs, source)
    raise ValueError(_("no price"))  # not reached: there is at least one


# How much a plan is: its cells, its boxes, and about how long they take. Pure.


@dataclass(frozen=True)
class Expected:
    """`seconds` until the last queue ends, all running at once; None where nothing is known."""

    cells: int
    boxes: int
    seconds: float | None


def expected_time(
    cells: Sequence[Cell], boxes: Mapping[str, Sequence[str]], measured: Iterable[Sample]
) -> Expected:
    """`boxes` are those of each queue's file. What earlier runs took is all that a time is taken
    from; those of a pool share it evenly.
    """
    costs, unit = costs_of_cells(cells, measured, {}, {})
    takes_s: dict[str, float] = defaultdict(float)
    for cell in cells:
        takes_s[cell.queue] += costs[cell.name].amount / len(boxes[cell.queue])
    seconds = max(takes_s.values()) if unit == SECONDS and takes_s else None
    return Expected(len(cells), sum(len(boxes[queue]) for queue in takes_s), seconds)
