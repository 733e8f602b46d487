"""A checkpoint that was brought here from a lost box, lent to the box that runs the cell next.

Only to a queue that has not tried the cell: what a box knows of its own attempts is newer than
anything here, and may have been put aside for a reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from boxcar.laptop.results.bring_checkpoint import here
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import QueueView
from boxcar.laptop.transfer import folders
from boxcar.shared.errors import DamagedError, TemporaryError
from boxcar.shared.files import manifest
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.message import counted
from boxcar.shared.wire import asks

TAKE_S = 600.0  # the box hashes what may be tens of gigabytes


def lend(run: OpenRun, queue: QueueView) -> Iterator[str]:
    """Send what the cells of a queue without an agent can continue from; a sentence for each.

    Raises nothing for a checkpoint that is damaged here: its cell begins anew, and that is said.
    Raises TemporaryError and OSError, because a launch that goes on would lose hours of work.
    """
    for cell in run.plan.cells:
        pointer = here(run, cell.name)
        if cell.queue != queue.name or pointer is None or _was_tried(queue, cell.name):
            continue
        if difference := manifest.compare_one(run.results.resume(cell.name), pointer.file):
            yield (
                f"{cell.name}: begins anew: of its checkpoint here {difference.path} "
                f"{difference.problem}"
            )
        elif _send(run, run.plan.queues[queue.name], cell.name, pointer):
            yield (
                f"{cell.name}: continues on {queue.box} from its checkpoint of {pointer.at} "
                f"({counted(pointer.attempt, 'attempt')} before)"
            )


def _was_tried(queue: QueueView, cell: str) -> bool:
    record = queue.state.cells.get(cell) if queue.state else None
    return queue.state is None or (record is not None and record.attempts > 0)


def _send(run: OpenRun, box: str, cell: str, pointer: Resume) -> bool:
    """False where the box has one of its own. The bytes first, then what makes them count."""
    there = run.boxes.place(box, str(run.project.on_tier.resume(cell)))
    folders.send_folder(run.results.resume(cell), there)
    try:
        return run.boxes.ask(box, asks.TakeCheckpoint(cell, pointer), timeout_s=TAKE_S).is_new
    except DamagedError as error:
        raise TemporaryError(str(error)) from error
