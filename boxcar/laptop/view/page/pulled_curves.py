"""The whole curves of cells that were pulled: of those the journals have a report a minute only."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from boxcar.laptop.view.page.cell_curves import Report, Reports, Told
from boxcar.laptop.view.report import cell_series, chart
from boxcar.laptop.view.report.cell_series import Pulled, Series
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest
from boxcar.shared.files.manifest import Manifest
from boxcar.shared.files.plan import Metric
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Whole:
    """What a cell's result says of its curves."""

    manifest: Manifest
    reports: tuple[Report, ...]


def read_pulled_curves(
    results: ResultPaths,
    metrics: Sequence[Metric],
    cells: Sequence[str],
    known: Mapping[str, Whole],
) -> dict[str, Whole]:
    """Of these cells, as far as they are here; what was read before of the same result stays."""
    found = {cell: made for cell in cells if (made := _manifest(results, cell))}
    same = {c: known[c] for c, made in found.items() if c in known and known[c].manifest == made}
    new = [cell for cell in found if cell not in same]
    pulled = [Pulled(results.cell(cell), found[cell], tuple(metrics)) for cell in new]
    series = zip(new, cell_series.of_cells(pulled), strict=True)
    return same | {c: Whole(found[c], tuple(_reports(one, found[c]))) for c, one in series}


def over(reports: Reports, whole: Mapping[str, Whole]) -> dict[str, Told]:
    """The reports of the looks, and in their place the whole curves where they are known."""
    places = {cell: told.place for cell, told in reports.items()}
    known = {c: Told(places.get(c, 0), one.reports) for c, one in whole.items() if one.reports}
    return {**reports, **known}


def _manifest(results: ResultPaths, cell: str) -> Manifest | None:
    with contextlib.suppress(OSError, DamagedError):
        return manifest.read_manifest(results.manifest(cell))
    return None


def _reports(series: Series, made: Manifest) -> Iterator[Report]:
    with contextlib.suppress(ValueError):
        began_s, ended_s = manifest.times(made)
        for key, points in series.items():
            times = cell_series.times(points, began_s, ended_s)
            for at, (step, _, value) in zip(times, points, strict=True):
                told = {key: value} if step is None else {chart.X: step, key: value}
                yield Report(made.ended_at, (at - began_s) / 60, told)
