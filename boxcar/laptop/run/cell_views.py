"""The roster with what the journals say of each cell, from the queue that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from boxcar.laptop.run import condition, moves
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import RosterCell
from boxcar.laptop.run.view import CellView, QueueView
from boxcar.shared import names, state, timestamp
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, message_of
from boxcar.shared.files import manifest, receipt
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.record import replace
from boxcar.shared.sentence import _
from boxcar.shared.state import CellRecord, Failed, Queued, Running, Verified


def cell_views(
    run: OpenRun,
    cells: Iterable[RosterCell],
    queues: Sequence[QueueView],
    now: str,
) -> list[CellView]:
    """By queue and index; a cell of no queue that is known comes last."""
    by_name = {queue.name: queue for queue in queues}
    order: dict[str, int] = {}
    for place, queue_view in enumerate(queues):
        order[queue_view.name] = place
        order.setdefault(names.file_of(queue_view.name), place)
    states = {queue.name: queue.state for queue in queues if queue.state}
    records = state.merge(states, moves.owners_of_lines(run, states))
    unheard_of = ("", state.NOTHING_YET if len(states) == len(queues) else None)
    given_up = _reasons_given_up(run)
    views = []
    for cell in sorted(cells, key=lambda cell: order.get(cell.queue, len(order))):
        queue, told = records.get(cell.name, unheard_of)
        by = by_name[queue] if queue else None
        # What was lent to a box is done before its agent has said so.
        accepted, doubt = _accepted(run, cell.name, told)
        record = _with_accepted(told, accepted) if told and accepted else told
        stands = by or by_name.get(cell.queue)
        views.append(
            CellView(
                name=cell.name,
                queue=by.name if by else cell.queue,
                # Of a pool nobody knows yet which box takes the cell.
                box=stands.box if stands else "" if cell.queue in order else "unknown",
                cfg=cell.cfg,
                task=cell.task,
                epochs=cell.epochs,
                index=cell.index,
                record=record,
                is_dropped=cell.is_dropped,
                accepted=accepted,
                doubt=doubt,
                after=cell.own.after,
                given_up=given_up.get(cell.name),
                **(_seen(run, cell.name, record, by, now) if record and by else {}),
            )
        )
    return views


def _seen(
    run: OpenRun, cell: str, record: CellRecord, queue: QueueView, now: str
) -> dict[str, Any]:
    """What its queue has told of the cell beside its record, as fields of the view."""
    told = {"seconds": record.seconds, "progress": record.progress, "best": record.best}
    if isinstance(record.state, Verified):
        damage = _lost_result(run, cell, record.state, queue, now)
        return told | {"metrics": record.metrics, "best": {}, "damage": damage}
    if not isinstance(record.state, Running):
        return told
    told["seconds"] = record.seconds + condition.ran_s(queue, cell, record.state, now)
    beat = queue.heartbeat.of_cell(cell) if queue.heartbeat else None
    if beat and beat.progress:
        told |= {"progress": beat.progress, "best": beat.best}
    if beat and beat.attempt == record.state.attempt:
        told["seen"] = beat.seen
    return told | {"is_broken_off": condition.is_broken_off(queue, cell)}


def _accepted(
    run: OpenRun, cell: str, record: CellRecord | None
) -> tuple[Accepted | None, str | None]:
    """What `verify` has proven of a cell that its box called failed, or that has no result of its
    queue's own, and why that cannot be read. The agents read the same document, and train such a
    cell no more.
    """
    now = record.state if record else None
    if not isinstance(now, (Failed, Queued)) and not (isinstance(now, Verified) and now.by):
        return None, None
    try:
        return receipt.accepted_result(run.tier, cell), None
    except (DamagedError, OSError) as error:
        return None, message_of(error).text


def _with_accepted(record: CellRecord, made: Accepted) -> CellRecord:
    """The record as the next agent will have it."""
    if isinstance(record.state, Verified):
        return record
    attempt = max(1, record.attempts)
    state = Verified(attempt, made.at, made.manifest_sha256, by=receipt.LAPTOP)
    return replace(record, state=state)


_A_REASON = re.compile(rb'"because":\s*"')


def _reasons_given_up(run: OpenRun) -> dict[str, str]:
    """Why a person has given up which cells, by the last receipt; {} where none can be read."""
    path = run.results.receipt
    try:
        # Of most runs nothing was: each look reads it, and a receipt may have thousands of cells.
        if not _A_REASON.search(path.read_bytes()):
            return {}
        verdicts = receipt.read_run(path).cells
    except (OSError, DamagedError):
        return {}
    return {one.cell: one.because for one in verdicts if one.because is not None}


# Of a cell that its journal calls verified: whether what was published is on the durable tier.
#
# A journal says what was so once. The manifest that it names has to be there now, byte by byte.


_GONE = _("its manifest is gone from the durable tier")


def _lost_result(
    run: OpenRun,
    cell: str,
    said: Verified,
    queue: QueueView,
    now: str,
) -> str | None:
    """Why the result cannot be counted as safe, as a clause; None where nothing speaks against it.

    Nothing is said where the tier is gone: a teardown removes it, and one that is out of sight is
    told as that.
    """
    path = run.tier.manifest(cell)
    try:
        if manifest.sha256(path) == said.manifest_sha256:
            return None
        return _unlike(path.read_bytes(), str(path), said)
    except FileNotFoundError:
        if not run.tier.root.exists():
            return None
        return None if _may_be_unseen(run, said, queue, now) else _GONE
    except OSError as error:
        return _("its manifest cannot be read: {text}", text=message_of(error).text)


def _may_be_unseen(run: OpenRun, said: Verified, queue: QueueView, now: str) -> bool:
    age_s = timestamp.seconds_between(said.at, now, queue.clock_ahead_s)
    return age_s < run.listing_age_s(queue.box)


def _unlike(data: bytes, where: str, said: Verified) -> str | None:
    if digest.of_bytes(data) == said.manifest_sha256:
        return None
    try:
        found = manifest.parse_manifest(data, where)
    except DamagedError:
        return _("its manifest on the durable tier is damaged")
    # A later attempt may be published before its agent, which died, could say so.
    if found.attempt > said.attempt:
        return None
    return _("the manifest on the durable tier is not the one in the event log")
