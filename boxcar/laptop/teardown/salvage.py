"""What a teardown saves of cells that have no proven result, before anything on their boxes ends.

Such cells were given up, or have failed: their last checkpoint, their log and the log of the agent
may be all that tells why. What goes with the box is brought here first; what cannot be brought
holds the box. On a box that never answers again nothing can be saved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from boxcar.laptop.results import bring_checkpoint, failed_logs
from boxcar.laptop.results.bring_checkpoint import Due
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import Missing
from boxcar.laptop.run.view import CellView, RunView
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, Command, words_of
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks


def cells_to_save(run: OpenRun, view: RunView, ended: Collection[str]) -> list[CellView]:
    """Those that ran and have no proven result, on boxes that are still there."""
    return [
        cell
        for cell in view.cells
        if cell.word != "verified"
        and cell.record is not None
        and cell.record.attempts
        and run.is_planned(cell.box)
        and cell.box not in ended
        and not run.is_out_of_reach(cell.box)
    ]


def checkpoints_to_save(run: OpenRun, view: RunView, cells: Collection[CellView]) -> list[Due]:
    """The newest of each of these cells, where it goes with its box."""
    profile = run.project.profile
    if profile.storage.durable in profile.meter_stop.preserves:
        return []
    names = {cell.name for cell in cells}
    return [one for one in bring_checkpoint.due(run, view) if one.cell in names]


def save_before_end(run: OpenRun, view: RunView, ended: Collection[str]) -> Iterator[Missing]:
    """Bring all of it here; what could not be brought, each with the reason."""
    cells = cells_to_save(run, view, ended)
    for due in checkpoints_to_save(run, view, cells):
        try:
            bring_checkpoint.bring(run, due)
        except (BoxcarError, OSError) as error:
            what = _("its last checkpoint on {box} could not be saved", box=due.box)
            yield _held(due.cell, what, words_of(error))
    for log in failed_logs.pull_failed_logs(run, cells):
        if log.problem:
            yield _held(log.cell, _("its log could not be saved"), log.problem)
    for queue, box in _queues_of(run, cells):
        if problem := _save_agents_log(run, queue, box):
            what = _("the log of the agent of {queue} could not be saved", queue=queue)
            yield _held(None, what, problem)


def _held(cell: str | None, what: str, why: str) -> Missing:
    text = _("{what}, so its box stays as it is: {why}", what=what, why=why)
    return Missing(cell, text, Command("down"))


def _queues_of(run: OpenRun, cells: Collection[CellView]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((q, cell.box) for cell in cells for q in run.queues_on(cell.box)))


def _save_agents_log(run: OpenRun, queue: str, box: str) -> str:
    """'' where it lies here, or there is none."""
    path = run.results.failed_log(f"agent-{queue}")
    lines, most_bytes = failed_logs.MOST_LINES, failed_logs.MOST_BYTES
    try:
        found = run.ask(box, run_asks.ReadLog(None, lines, most_bytes, queue=queue))
        if found.is_there:
            atomic.make_folder(path.parent)
            atomic.write_whole(path, found.data)
    except (BoxcarError, OSError) as error:
        return words_of(error)
    return ""
