"""How long a cell and its queue will still take, from what has been seen. Pure.

A running cell is judged by its own epochs, once one is done; a cell that waits by the verified ones
of its task, and their time for each epoch. What nobody can know stays None.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping

from boxcar.laptop.run.view import DAMAGED, DROPPED, CellView, RunView
from boxcar.shared import state

_ENDED = (state.Succeeded, state.Synced, state.Verified, state.Failed)
_OVER = frozenset((DAMAGED, DROPPED, *(kind.word for kind in _ENDED)))


def seconds_per_epoch(cells: Iterable[CellView]) -> dict[str, float]:
    """Of each task the median time for an epoch, over its verified cells."""
    seen: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        if cell.record and isinstance(cell.record.state, state.Verified) and cell.epochs:
            seen[cell.task].append(cell.seconds / cell.epochs)
    return {task: statistics.median(found) for task, found in seen.items()}


def _left_s(cell: CellView, per_epoch: Mapping[str, float]) -> float | None:
    """Of a cell that is not over."""
    if cell.record is None or not cell.epochs:
        return None
    done = cell.progress.get("epoch")
    if isinstance(cell.record.state, state.Running) and isinstance(done, (int, float)) and done > 0:
        return cell.seconds / done * max(0.0, cell.epochs - done)
    if cell.task not in per_epoch:
        return None
    return max(0.0, per_epoch[cell.task] * cell.epochs - cell.seconds)


def queues_left_s(view: RunView, left_s: Mapping[str, float | None]) -> dict[str, float | None]:
    """Seconds until each queue's last cell ends, of the `left_s` of each cell; None where one of
    them is unknown.
    """
    found: dict[str, float | None] = {queue.name: 0.0 for queue in view.queues}
    for cell in view.cells:
        own_s, before_s = left_s[cell.name], found.get(cell.queue, 0.0)
        found[cell.queue] = None if own_s is None or before_s is None else own_s + before_s
    return found


def cells_left_s(view: RunView) -> dict[str, float | None]:
    """Seconds until each cell's script ends, by what its run has seen; 0 for one that has ended,
    None where nobody knows.
    """
    left_s: dict[str, float | None] = {cell.name: 0.0 for cell in view.of_words(_OVER)}
    if to_come := view.of_words(view.by_word.keys() - _OVER):
        per_epoch = seconds_per_epoch(view.cells)
        left_s |= {cell.name: _left_s(cell, per_epoch) for cell in to_come}
    return left_s
