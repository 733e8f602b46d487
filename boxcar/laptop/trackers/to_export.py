"""Which cells a tracker gets, from a report and the results beside its receipt.

Fail closed: only what the receipt proves, whose progress here is as its manifest says.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from boxcar.laptop.project.project import Project
from boxcar.laptop.report import gather
from boxcar.laptop.report.groups import ReportCell
from boxcar.laptop.report.run_report import Report
from boxcar.laptop.trackers import points
from boxcar.laptop.trackers.exported_cell import ExportedCell, Point, id_of, typed
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest, progress
from boxcar.shared.files.manifest import Manifest
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass


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


def of_report(project: Project, report: Report) -> Iterator[ExportedCell | NotExported]:
    """One for each cell of the report, in its order."""
    for group in report.groups:
        for seed, cell in zip(group.seeds, group.cells, strict=True):
            results = gather.results_of(project, cell.run)
            yield _of_cell(results, report.receipts[cell.run], cell, group.name, seed)


def _of_cell(
    results: ResultPaths, receipt: str, cell: ReportCell, group: str, seed: str
) -> ExportedCell | NotExported:
    if cell.lack:
        return NotExported(cell.run, cell.name, cell.lack)
    try:
        data = results.manifest(cell.name).read_bytes()
        made = manifest.parse(data, str(results.manifest(cell.name)))
        began_s = timestamp.parse_utc(made.started_at).timestamp()
        found = _points(results.cell(cell.name), made, began_s)
    except (OSError, DamagedError, ValueError) as error:
        return NotExported(cell.run, cell.name, str(error))
    return ExportedCell(
        run=cell.run,
        name=cell.name,
        group=group,
        seed=seed,
        box=made.box,
        config={key: typed(value) for key, value in cell.settings.items()},
        numbers={name: value for name, value in cell.numbers.items() if value is not None},
        points=found,
        began_s=began_s,
        ended_s=timestamp.parse_utc(made.ended_at).timestamp(),
        manifest=digest.of_bytes(data),
        receipt=receipt,
    )


def _points(folder: Path, made: Manifest, began_s: float) -> tuple[Point, ...]:
    """What was published of them. Raises DamagedError where it is not that any more."""
    listed = [file for file in made.files if file.path == progress.FILE]
    if not listed:
        return ()
    if found := manifest.compare_one(folder, listed[0]):
        raise DamagedError(
            Sentence("report.export_changed", file=found.path, problem=found.problem)
        )
    return points.of_file(folder / progress.FILE, began_s)
