"""How long a cell and its queue will still take, from what has been seen. Pure.

A running cell is judged by its own epochs, once one is done; a cell that waits by the verified ones
of its task, and their time for each epoch. What nobody can know stays None.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping

from boxcar.laptop.run.view import CellView
from boxcar.shared import state

_OVER = (state.Succeeded, state.Synced, state.Verified, state.Failed)


def seconds_per_epoch(cells: Iterable[CellView]) -> dict[str, float]:
    """Of each task the median time for an epoch, over its verified cells."""
    seen: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        if cell.record and isinstance(cell.record.state, state.Verified) and cell.epochs:
            seen[cell.task].append(cell.seconds / cell.epochs)
    return {task: statistics.median(found) for task, found in seen.items()}


def cell_left_s(cell: CellView, per_epoch: Mapping[str, float]) -> float | None:
    """Seconds until the cell's script ends; 0 for one that has ended, None where nobody knows."""
    if cell.is_dropped:
        return 0.0
    if cell.record is None or not cell.epochs:
        return None
    if isinstance(cell.record.state, _OVER):
        return 0.0
    done = cell.progress.get("epoch")
    if isinstance(cell.record.state, state.Running) and isinstance(done, (int, float)) and done > 0:
        return cell.seconds / done * max(0.0, cell.epochs - done)
    if cell.task not in per_epoch:
        return None
    return max(0.0, per_epoch[cell.task] * cell.epochs - cell.seconds)


def queue_left_s(
    cells: Iterable[CellView], queue: str, per_epoch: Mapping[str, float]
) -> float | None:
    """Seconds until the queue's last cell ends; None where one of them is unknown."""
    left_s = [cell_left_s(cell, per_epoch) for cell in cells if cell.queue == queue]
    return None if None in left_s else sum(one for one in left_s if one is not None)
