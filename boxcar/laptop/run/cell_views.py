"""The roster with what the journals say of each cell, from the queue that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from boxcar.laptop.run import acceptance, lost_result, moves
from boxcar.laptop.run.journals.looked_before import LookedBefore
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import RosterCell
from boxcar.laptop.run.view import CellView, QueueView
from boxcar.shared import state, timestamp
from boxcar.shared.errors import DamagedError, message_of
from boxcar.shared.files import manifest
from boxcar.shared.files.accepted import Accepted
from boxcar.shared.paths import MANIFEST
from boxcar.shared.state import CellRecord, Verified


def cell_views(
    run: OpenRun,
    cells: Iterable[RosterCell],
    queues: Sequence[QueueView],
    now: str,
    before: LookedBefore | None = None,
) -> list[CellView]:
    """By queue and index; a cell of no queue that is known comes last. `before` as `look` has it.

    A run has a hundred thousand of them: what is done here for each is done once and without a
    record in between.
    """
    by_name = {queue.name: queue for queue in queues}
    order = {queue.name: place for place, queue in enumerate(queues)}
    states = {queue.name: queue.state for queue in queues if queue.state}
    records = state.merge(states, moves.owners(run, states))
    unheard_of = ("", state.NOTHING_YET if len(states) == len(queues) else None)
    indices = {cell.name: cell.index for cell in run.plan.cells}
    damage = _damages(run, now, before)
    views = []
    for cell in sorted(cells, key=lambda cell: order.get(cell.queue, len(order))):
        queue, told = records.get(cell.name, unheard_of)
        by = by_name[queue] if queue else None
        # What was lent to a box is done before its agent has said so.
        accepted, doubt = _accepted(run, cell.name, told)
        record = acceptance.merged(told, accepted) if told and accepted else told
        stands = by or by_name.get(cell.queue)
        seconds, progress = _until(now, cell.name, record, by) if record and by else (0.0, {})
        is_verified = by and record and isinstance(record.state, Verified)
        views.append(
            CellView(
                name=cell.name,
                queue=by.name if by else cell.queue,
                box=stands.box if stands else "unknown",
                cfg=cell.cfg,
                task=cell.task,
                epochs=cell.epochs,
                index=indices.get(cell.name),
                record=record,
                seconds=seconds,
                progress=progress,
                metrics=record.metrics if record and is_verified else {},
                is_dropped=cell.is_dropped,
                damage=damage(cell.name, record, by) if record and by else None,
                accepted=accepted,
                doubt=doubt,
                after=cell.own.after,
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


def _until(
    now: str, cell: str, record: CellRecord, queue: QueueView
) -> tuple[float, dict[str, Any]]:
    """The seconds of its attempts, and its progress, as its queue knows them by now."""
    seconds, progress = record.seconds, record.progress
    if isinstance(record.state, state.Running) and queue.is_alive:
        seconds += timestamp.seconds_between(record.state.at, now, queue.clock_ahead_s)
        if queue.heartbeat and queue.heartbeat.cell == cell:
            progress = queue.heartbeat.progress or progress
    return seconds, progress


def _damages(
    run: OpenRun, now: str, before: LookedBefore | None
) -> Callable[[str, CellRecord, QueueView], str | None]:
    """Asks why the result of a cell that is called verified is not on the tier as it was, if so."""
    # No Path for each: a run has a hundred thousand, and to make one takes longer than to ask.
    folder, sha256_of = str(run.tier.cells), before.sha256 if before else manifest.sha256

    def damage(cell: str, record: CellRecord, queue: QueueView) -> str | None:
        said = record.state
        if not isinstance(said, Verified):
            return None
        path = f"{folder}/{cell}/{MANIFEST}"
        if before and before.has_manifest(path, cell, said.manifest_sha256):
            return None
        return lost_result.lost(run, cell, said, queue, now, sha256_of=sha256_of)

    return damage
