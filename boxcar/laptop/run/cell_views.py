"""The roster with what the journals say of each cell, from the queue that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from boxcar.laptop.run import acceptance, condition, moves, view
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import RosterCell
from boxcar.laptop.run.view import CellView, QueueView
from boxcar.shared import state
from boxcar.shared.errors import DamagedError, message_of
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.state import CellRecord, Running, Verified

# One for all cells of which nothing is known: nothing is ever written into it.
_NONE: dict[str, Any] = {}


def cell_views(
    run: OpenRun,
    cells: Iterable[RosterCell],
    queues: Sequence[QueueView],
    now: str,
) -> list[CellView]:
    """By queue and index; a cell of no queue that is known comes last."""
    by_name = {queue.name: queue for queue in queues}
    order = {queue.name: place for place, queue in enumerate(queues)}
    states = {queue.name: queue.state for queue in queues if queue.state}
    records = state.merge(states, moves.owners_of_lines(run, states))
    unheard_of = ("", state.NOTHING_YET if len(states) == len(queues) else None)
    may_be, given_up = acceptance.asks_of(run.tier), acceptance.given_up(run)
    views = []
    for cell in sorted(cells, key=lambda cell: order.get(cell.queue, len(order))):
        queue, told = records.get(cell.name, unheard_of)
        by = by_name[queue] if queue else None
        # What was lent to a box is done before its agent has said so.
        accepted, doubt = _accepted(run, cell.name, told) if may_be(cell.name) else (None, None)
        record = acceptance.merged(told, accepted) if told and accepted else told
        stands = by or by_name.get(cell.queue)
        seconds, progress, best, metrics, lost = 0.0, _NONE, _NONE, _NONE, None
        is_broken_off = False
        if record and by:
            seconds, progress, best = record.seconds, record.progress, record.best
            if isinstance(record.state, Verified):
                metrics, best = record.metrics, _NONE
                lost = view.lost_result(run, cell.name, record.state, by, now)
            elif isinstance(record.state, Running):
                seconds += condition.ran_s(by, record.state, now)
                is_broken_off = condition.is_broken_off(by)
                if (beat := by.heartbeat) and beat.cell == cell.name and beat.progress:
                    progress, best = beat.progress, beat.best
        views.append(
            CellView(  # by place, which takes a hundred thousand of them less
                cell.name,
                by.name if by else cell.queue,
                stands.box if stands else "unknown",
                cell.cfg,
                cell.task,
                cell.epochs,
                cell.index,
                record,
                seconds,
                progress,
                best,
                metrics,
                cell.is_dropped,
                lost,
                accepted,
                doubt,
                cell.own.after,
                is_broken_off,
                given_up.get(cell.name),
            )
        )
    return views


def _accepted(
    run: OpenRun, cell: str, record: CellRecord | None
) -> tuple[Accepted | None, str | None]:
    if record is None or not acceptance.is_asked(record):
        return None, None
    try:
        return acceptance.found(run.tier, cell, record), None
    except (DamagedError, OSError) as error:
        return None, message_of(error).text
