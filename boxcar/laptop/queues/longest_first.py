"""Which queue takes which cell: the longest goes first, to where it ends earliest. Pure.

Never more than a third longer than the best possible, on boxes of one speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
