"""A queue whose tasks run one cell each: as many tasks as it has cells that nobody has checked yet.

They run one at a time, because a queue has one agent. Which cell a task runs is found when it
starts, by claim: lines may be appended, moved or commented out until then.
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.files import queue_line
from boxcar.shared.paths import DurablePaths

# Sites allow 1001 in an array unless they say otherwise; the next launch submits the rest.
MOST = 1000


def of_queue(tier: DurablePaths, queues: Mapping[str, str]) -> dict[str, str]:
    """The queue of each task, by index. Raises OSError, DamagedError; ValueError for two queues."""
    [queue] = queues.values()
    cells = queue_line.parse(tier.queue(queue).read_bytes()).cells
    tasks = sum(not tier.receipt(cell.name).exists() for cell in cells)
    return dict.fromkeys(map(str, range(min(MOST, max(1, tasks)))), queue)
