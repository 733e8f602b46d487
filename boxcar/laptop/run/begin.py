"""Where a queue begins: `--start-index` means a cell, and is kept as that cell's name.

Lines above it may be commented out later. A number would mean another cell then, also when the
queue is launched again or its box was rebooted.
"""

from __future__ import annotations

from boxcar.laptop.queues import sync
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import QueueView
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.files import queue_line


def begin_of_run(run: OpenRun, queue: QueueView, start_index: int | None) -> tuple[int, str | None]:
    """How many lines are skipped, and the first cell to run; None where all of them are.

    Without a `start_index` as the queue was started before. Raises OSError.
    """
    if start_index is None:
        before = queue.session
        return (before.start_index, before.start_cell) if before else (0, None)
    local = run.project.queue_files[queue.name].read_bytes()
    lines = queue_line.parse_queue(sync.joined(local, sync.read_tier_queue(run.tier.queue(queue.name)))).lines
    index = min(start_index, len(lines))
    first = next((line.name for line in lines[index:] if isinstance(line, CellLine)), None)
    return index, first if index else None
