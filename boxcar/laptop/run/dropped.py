"""Which cells were dropped: a plan asked for them, they were never begun, and their line has a `#`.

A line that was deleted says nothing: an old editor buffer that is saved over a queue does the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from boxcar.laptop.queues import sync
from boxcar.laptop.queues.sync import Diverged
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import Line, Roster, RosterCell
from boxcar.shared.cell import spelling
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import queue_line, receipt
from boxcar.shared.record import replace

# Name, config and task.
_AsLine = tuple[str, str, str]


def judge_dropped(run: OpenRun, found: Roster, lineless: Iterable[RosterCell]) -> Roster:
    """The roster with what became of each line. `lineless` are the cells that have neither a line
    on the durable tier nor an event.
    """
    if not run.tier.root.exists():
        dropped = set(_dropped_in_receipt(run.results.receipt))
        return _with_lines(found, dict.fromkeys(dropped, Line.IS_COMMENTED_OUT))
    open_cells = [cell for cell in lineless if not _is_begun(run, cell)]
    if not open_cells:
        return found
    commented = {_as_line(line) for line in _commented_out(run.tier.queues)}
    local = {queue: _of_local(run, queue) for queue in {cell.queue for cell in open_cells}}
    planned = frozenset(cell.name for cell in run.plan.cells)
    lines = {one.name: _line(one, commented, planned, local[one.queue]) for one in open_cells}
    return _with_lines(found, lines)


def _with_lines(found: Roster, lines: dict[str, Line]) -> Roster:
    cells = (replace(cell, line=lines.get(cell.name, cell.line)) for cell in found.cells)
    return replace(found, cells=tuple(cells))


def _is_begun(run: OpenRun, cell: RosterCell) -> bool:
    tier = run.tier
    return tier.claim(cell.name).exists() or tier.manifest(cell.name).exists()


def _line(
    cell: RosterCell,
    commented: Collection[_AsLine],
    planned: Collection[str],
    local: Line | None,
) -> Line:
    # Its own line, and no remark that begins with its name.
    if (cell.name, spelling.config_path(cell.cfg), cell.task) in commented:
        return Line.IS_COMMENTED_OUT
    if local is None:
        return Line.IS_THERE
    return local if cell.name in planned else Line.IS_GONE


def _as_line(line: CellLine) -> _AsLine:
    return line.name, line.cfg, line.task


def _of_local(run: OpenRun, queue: str) -> Line | None:
    """What the lines of the local file are that the tier lacks; None where that cannot be told.
    What cannot be read is a doubt already.
    """
    try:
        there = sync.read_tier_queue(run.tier.queue(queue))
    except OSError:
        return None
    try:
        local = run.project.queue_files[queue].read_bytes()
    except (OSError, KeyError):
        return Line.IS_THERE
    is_refused = isinstance(sync.reconcile(local, there), Diverged)
    return Line.IS_HELD_BACK if is_refused else Line.IS_THERE


def _commented_out(folder: Path) -> Iterator[CellLine]:
    try:
        files = sorted(folder.glob("*.txt"))
    except OSError:
        return
    for path in files:
        try:
            yield from queue_line.commented_out(queue_line.what_counts(path))
        except OSError:
            continue  # whose doubt stands in the roster


def _dropped_in_receipt(path: Path) -> Iterator[str]:
    """As it was while the tier was there."""
    try:
        seen = receipt.read_run(path)
    except (OSError, DamagedError):
        return
    yield from (verdict.cell for verdict in seen.cells if verdict.is_dropped)
