"""What of an export is new, and writing just that: a second export changes no byte.

Killed between any two lines and run again, it ends right: a cell counts once `export.json` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.project.project import Project
from boxcar.laptop.trackers import exported_cell
from boxcar.laptop.trackers.exported_cell import ExportedCell, ExportRecord, Kept, id_of
from boxcar.laptop.trackers.tracker import Tracker
from boxcar.laptop.view.report import cell_series, gather
from boxcar.laptop.view.report.cell_series import Pulled, Series
from boxcar.laptop.view.report.groups import ReportCell
from boxcar.laptop.view.report.run_report import Report
from boxcar.shared import paths
from boxcar.shared.errors import DamagedError, words_of
from boxcar.shared.files import manifest
from boxcar.shared.files.plan import Metric
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Which cells a tracker gets, from a report and the results beside its receipt.
#
# Fail closed: only what the receipt proves, and series only of files that are as its manifest says.


@dataclass(frozen=True)
class NotExported:
    """A cell that no tracker gets, and why."""

    run: str
    name: str
    because: str

    @property
    def key(self) -> str:
        return f"{self.run}/{self.name}"

    @property
    def id(self) -> str:
        return id_of(self.key)


def of_report(project: Project, report: Report) -> list[ExportedCell | NotExported]:
    """One for each cell of the report, in its order."""
    found = [
        (group.name, seed, cell)
        for group in report.groups
        for seed, cell in zip(group.seeds, group.cells, strict=True)
    ]
    metrics = gather.metrics_of(project, report.asked.runs)
    proven = [_proven(project, cell, metrics[cell.run]) for _, _, cell in found]
    series = cell_series.of_cells([one for one in proven if isinstance(one, Pulled)])
    exported: list[ExportedCell | NotExported] = []
    for (group, seed, cell), one in zip(found, proven, strict=True):
        if isinstance(one, Pulled):
            about = {"group": group, "seed": seed, "receipt": report.receipts[cell.run]}
            exported.append(_cell(cell, one, next(series), **about))
        else:
            exported.append(one)
    return exported


def _proven(project: Project, cell: ReportCell, metrics: Sequence[Metric]) -> Pulled | NotExported:
    """Where each file that its series are read from is what was published; of what is only carried
    beside them the series of what is left of it.
    """
    if cell.lack:
        return NotExported(cell.run, cell.name, cell.lack)
    try:
        pulled = gather.pulled(project, cell, metrics)
        manifest.times(pulled.manifest)
        differing = manifest.compare(pulled.folder, tuple(cell_series.sources(pulled)))
        published = {file.path for file in pulled.manifest.files}
        for found in differing:
            if found.path in published:
                changed = _(
                    "{file} {problem}, so its curve cannot be trusted",
                    file=found.path,
                    problem=found.problem,
                )
                return NotExported(cell.run, cell.name, changed)
    except (OSError, DamagedError, ValueError) as error:
        return NotExported(cell.run, cell.name, words_of(error))
    return cell_series.without(pulled, {found.path for found in differing})


def _cell(
    cell: ReportCell, pulled: Pulled, series: Series, *, group: str, seed: str, receipt: str
) -> ExportedCell:
    began_s, ended_s = manifest.times(pulled.manifest)
    return ExportedCell(
        run=cell.run,
        name=cell.name,
        group=group,
        seed=seed,
        box=pulled.manifest.box,
        config=cell.values,
        numbers={name: value for name, value in cell.numbers.items() if value is not None},
        points=exported_cell.points_of_series(series, began_s, ended_s),
        began_s=began_s,
        ended_s=ended_s,
        manifest=manifest.sha256(pulled.folder / paths.MANIFEST),
        receipt=receipt,
        trained_on=_trained_on(cell),
    )


def _trained_on(cell: ReportCell) -> dict[str, str]:
    on = cell.trained_on
    if on is None or not on.gpus:
        return {}
    uuids = " ".join(gpu.uuid for gpu in on.gpus)
    found = {"gpus": cell.gpus, "gpu_uuids": uuids, "driver": on.driver, "ranks": str(cell.ranks)}
    return {name: value for name, value in found.items() if value}


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
