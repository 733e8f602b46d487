"""What a launch says of a queue that ran before: what is left alone, and what starts over. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from boxcar.laptop.common import units
from boxcar.laptop.run.condition import cells_left_s, queues_left_s
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.shared import state
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import Command, Message, some
from boxcar.shared.files import control
from boxcar.shared.sentence import Sentence, _

_MOST_NAMED = 3


def left_alone(queue: QueueView, digest: str) -> str:
    """What is said of an agent that runs already, or that a scheduler is to start."""
    if queue.scheduled:
        return _(
            "{queue}: already submitted; it keeps its limits (for new ones: stop, then launch): "
            "{why}",
            queue=queue.name,
            why=queue.scheduled.sentence,
        )
    kept = _("{queue}: its agent is already running", queue=queue.name)
    if queue.session is None or queue.session.release == digest:
        return kept
    return _(
        "{kept} and stays on release {release}. {digest} is used from the next launch on, and now "
        "for lines whose config exists only in it",
        kept=kept,
        release=short(queue.session.release),
        digest=short(digest),
    )


def begins_below(queue: str, cell: str | None) -> Message:
    return Message(
        _(
            "{queue}: starts at {cell}, as in the last launch. To run the cells above it, too",
            queue=queue,
            cell=cell,
        )
        if cell
        else _(
            "{queue}: starts below its older cells, as in the last launch. To run those, too",
            queue=queue,
        ),
        Command("launch", ("--start-index", "0")),
    )


def starts_over(queue: QueueView, release: str, lines: Collection[str]) -> str | None:
    """Which failed cells an agent that starts now tries again, repaired or not; None for none.
    `lines`: the cells that still have one.
    """
    cells = [
        name
        for name, failed in _failed(queue, lines).items()
        if not failed.is_kept and not (failed.is_final and failed.release == release)
    ]
    if not cells:
        return None
    return _(
        "{queue}: {n} failed {n:cell starts|cells start} over, changed or not: {cells}",
        queue=queue.name,
        n=len(cells),
        cells=some(cells, _MOST_NAMED),
    )


def retried_later(view: RunView, queues: Iterable[str]) -> Iterator[Message]:
    """When the failed cells of agents at work are tried again, and how to have that sooner."""
    lines = [cell.name for cell in view.cells if cell.index is not None]
    for queue in map(view.queue, queues):
        cells = [name for name, failed in _failed(queue, lines).items() if not failed.is_kept]
        if queue.is_alive and queue.wanted == control.RUN and cells:
            when = when_retried(view, queue, cells)
            yield Message(
                _("{when}. To have {n:it|them} sooner", when=when, n=len(cells)), to_retry(queue)
            )


def when_retried(view: RunView, queue: QueueView, cells: Sequence[str]) -> Sentence:
    """Of failed cells whose agent is at work."""
    left_s = queues_left_s(view, cells_left_s(view))[queue.name]
    return _(
        "{cells}: the first launch after {queue} has ended{left} tries {n:it|them} again",
        cells=some(cells, _MOST_NAMED),
        queue=queue.name,
        left=_(" (in {time})", time=units.about(left_s)) if left_s else "",
        n=len(cells),
    )


def to_retry(queue: QueueView) -> Command:
    return Command("drain", ("--box", queue.box), note=_("then launch"))


def _failed(queue: QueueView, lines: Collection[str]) -> dict[str, state.Failed]:
    """Without those whose line was commented out: no agent tries them."""
    cells = queue.state.cells if queue.state else {}
    return {
        name: record.state
        for name, record in cells.items()
        if isinstance(record.state, state.Failed) and name in lines
    }
