"""What of an export is new, and writing just that: a second export changes no byte.

Killed between any two lines and run again, it ends right: a cell counts once `export.json` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.trackers import exported_cell
from boxcar.laptop.trackers.exported_cell import ExportedCell, ExportRecord, Kept
from boxcar.laptop.trackers.to_export import NotExported
from boxcar.laptop.trackers.tracker import Tracker
from boxcar.shared.record import dataclass

ADDED, CHANGED, UNCHANGED, LEFT_OUT = "added", "changed", "unchanged", "left out"


@dataclass(frozen=True)
class Outcome:
    """What became of a cell. `where` is below the folder; of one that is left out it is what an
    earlier export has left of it.
    """

    run: str
    cell: str
    id: str
    state: str
    because: str | None = None
    where: str | None = None


@dataclass(frozen=True)
class Due:
    """A cell that is to be written, and why."""

    cell: ExportedCell
    state: str


def due(folder: Path, record: ExportRecord, cells: Sequence[ExportedCell]) -> list[Due]:
    """Those that are not there as they are now. Reads names of files, and nothing else."""
    found = [(cell, record.cells.get(cell.key)) for cell in cells]
    return [
        Due(cell, CHANGED if kept and kept.content != cell.content else ADDED)
        for cell, kept in found
        if not (kept and kept.content == cell.content and (folder / kept.where).exists())
    ]


def write_cells(
    folder: Path,
    record: ExportRecord,
    wanted: Sequence[Due],
    tracker: Tracker,
    on_cell: Callable[[ExportedCell], None],
) -> ExportRecord:
    """Write them; the record as it is then. `on_cell` is told of each before its turn."""
    for one in wanted:
        on_cell(one.cell)
        kept = Kept(one.cell.content, tracker.write(folder, one.cell))
        record = replace(record, cells=record.cells | {one.cell.key: kept})
        exported_cell.write_export_record(folder, record)
    return record


def outcomes(
    cells: Sequence[ExportedCell | NotExported], wanted: Sequence[Due], record: ExportRecord
) -> Iterator[Outcome]:
    """One for each cell of the report; `record` as it is after the export."""
    states = {one.cell.key: one.state for one in wanted}
    for cell in cells:
        kept = record.cells.get(cell.key)
        where = kept.where if kept else None
        if isinstance(cell, NotExported):
            yield Outcome(cell.run, cell.name, cell.id, LEFT_OUT, cell.because, where)
        else:
            state = states.get(cell.key, UNCHANGED)
            yield Outcome(cell.run, cell.name, cell.id, state, None, where)
