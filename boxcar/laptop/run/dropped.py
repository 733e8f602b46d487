"""Which cells were dropped: a plan asked for them, they were never begun, and their line has a `#`.

A line that was deleted says nothing: an old editor buffer that is saved over a queue does the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.queues import sync
from boxcar.laptop.queues.sync import Diverged
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import Line, Roster, RosterCell
from boxcar.shared.cell import spelling
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import queue_line, receipt


def judged(run: OpenRun, found: Roster, begun: Collection[str], lines: Collection[str]) -> Roster:
    """The roster with what became of each line. `begun` are the cells with an event, `lines` those
    with a line on the durable tier.
    """
    if not run.tier.root.exists():
        dropped = set(_dropped_in_receipt(run.results.receipt))
        return _with_lines(found, dict.fromkeys(dropped, Line.IS_COMMENTED_OUT))
    open_cells = [
        cell for cell in found.cells if cell.name not in lines and not _is_begun(run, cell, begun)
    ]
    if not open_cells:
        return found
    commented = list(_commented_out(run.tier.queues))
    return _with_lines(found, {cell.name: _line(run, cell, commented) for cell in open_cells})


def _with_lines(found: Roster, lines: dict[str, Line]) -> Roster:
    cells = (replace(cell, line=lines.get(cell.name, cell.line)) for cell in found.cells)
    return replace(found, cells=tuple(cells))


def _is_begun(run: OpenRun, cell: RosterCell, begun: Collection[str]) -> bool:
    tier = run.tier
    return cell.name in begun or tier.claim(cell.name).exists() or tier.manifest(cell.name).exists()


def _line(run: OpenRun, cell: RosterCell, commented: Iterable[CellLine]) -> Line:
    if any(_is_of(line, cell) for line in commented):
        return Line.IS_COMMENTED_OUT
    return Line.IS_THERE if _is_to_come(run, cell) else Line.IS_GONE


def _is_of(line: CellLine, cell: RosterCell) -> bool:
    """Whether it is this cell's line, and no remark that begins with its name."""
    is_config = line.cfg == spelling.config_path(cell.cfg)
    return is_config and (line.name, line.task) == (cell.name, cell.task)


def _is_to_come(run: OpenRun, cell: RosterCell) -> bool:
    """Whether the next push brings the line, or nobody can tell: then that is a doubt already."""
    is_here = any(known.name == cell.name for known in run.plan.cells)
    try:
        there = sync.read(run.tier.queue(cell.queue))
        local = run.project.queue_files[cell.queue].read_bytes() if is_here else b""
    except (OSError, KeyError):
        return True
    return is_here and not isinstance(sync.reconcile(local, there), Diverged)


def _commented_out(folder: Path) -> Iterator[CellLine]:
    try:
        files = sorted(folder.glob("*.txt"))
    except OSError:
        return
    for path in files:
        try:
            yield from queue_line.commented_out(path.read_bytes())
        except OSError:
            continue  # whose doubt stands in the roster


def _dropped_in_receipt(path: Path) -> Iterator[str]:
    """As it was while the tier was there."""
    try:
        seen = receipt.read_run(path)
    except (OSError, DamagedError):
        return
    yield from (verdict.cell for verdict in seen.cells if verdict.is_dropped)
