"""A checkpoint that was brought here from a lost box, lent to the box that runs the cell next.

Whether it is needed there the box says itself: what the laptop knows of a box that was rented anew
may be what the lost one had reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from boxcar.laptop.common.progress import Progress
from boxcar.laptop.results.bring_checkpoint import here
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.transfer import folders
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import manifest
from boxcar.shared.message import Command
from boxcar.shared.wire import run_asks

TAKE_S = 600.0  # the box hashes what may be tens of gigabytes


def lend(run: OpenRun, queue: str, bar: Progress) -> Iterator[str]:
    """Send what the cells of a queue without an agent can continue from; a sentence for each, and
    its bytes to `bar`.

    A checkpoint that is damaged here is said, and its cell begins anew. Raises BoxcarError and
    OSError where one cannot be sent: a launch that went on would lose hours of work.
    """
    for cell in run.plan.cells:
        if cell.queue == queue:
            yield from lend_one(run, queue, cell.name, bar)


def lend_one(run: OpenRun, queue: str, cell: str, bar: Progress) -> Iterator[str]:
    """The same of one cell, where there is something to lend."""
    pointer = here(run, cell)
    if pointer is None:
        return
    question = run_asks.TakeCheckpoint(queue, cell, pointer)
    box = run.plan.queues[queue]
    answer = run.boxes.ask(box, question, timeout_s=TAKE_S)
    if answer.is_lacking:
        if difference := manifest.compare_one(run.results.resume(cell), pointer.file):
            yield (
                f"{cell}: begins anew: of its checkpoint here {difference.path} "
                f"{difference.problem}"
            )
            return
        answer = _send(run, box, question, bar)
    if answer.is_taken:
        yield f"{cell}: continues on {box} from its checkpoint of {pointer.at}"


def _send(
    run: OpenRun, box: str, question: run_asks.TakeCheckpoint, bar: Progress
) -> run_asks.CheckpointTaken:
    """The bytes first, then what makes them count."""
    there = run.boxes.place(box, str(run.project.on_tier.resume(question.cell)))
    part = bar.part(question.pointer.file.size_bytes, box)
    folders.send_folder(run.results.resume(question.cell), there, on_bytes=part.at)
    part.doing = Sentence("how_far.checking")
    answer = run.boxes.ask(box, question, timeout_s=TAKE_S)
    part.end()
    if answer.is_lacking:
        raise TemporaryError(
            f"{question.cell}: its checkpoint did not come to {box} whole", Command("launch")
        )
    return answer
