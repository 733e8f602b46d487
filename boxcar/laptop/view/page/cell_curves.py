"""The curves of the cells: what their journals have of the numbers that they report, once a minute,
and what came between with each look, as long as the cell ran.

No box is asked: one that cannot be reached has the curves of its last report.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from boxcar.laptop.run.view import GUESS, QueueView, RunView, guessed_numbers
from boxcar.laptop.view.report import cell_series, chart
from boxcar.laptop.view.report.cell_series import Pulled, Series
from boxcar.laptop.view.report.chart import At, Curve, Point, Points
from boxcar.laptop.view.run_rows import headline
from boxcar.shared import timestamp
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest
from boxcar.shared.files.heartbeat import CellBeat
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.manifest import Manifest
from boxcar.shared.files.plan import Metric
from boxcar.shared.metrics.records import NOT_METRICS, thin
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# As many as have a look of their own, and as a page can hold. Cells that run come first, then the
# newest results.
MOST_CELLS, MOST_CHARTS = 24, 12
# Of one cell; of more each second one is dropped, so that days of looks stay small.
_MOST_KEPT = 240
_DASHES = 3


@dataclass(frozen=True)
class Report:
    """What a cell said then; `minutes` since it was started first. Its start says nothing."""

    at: str
    minutes: float
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Told:
    """Of one cell, oldest first. By its `place` it has a look that it keeps."""

    place: int
    reports: tuple[Report, ...] = ()


@dataclass(frozen=True)
class Drawn:
    """The curves of one number; by step where all tell one, else by the minutes of each cell."""

    is_by_step: bool
    curves: tuple[Curve, ...]
    looks: tuple[str, ...]

    def x_name(self, language: str) -> str:
        return chart.X if self.is_by_step else _("minutes since first start").said(language)


# By cell.
Reports = Mapping[str, Told]


def reports_after_look(reports: Reports, view: RunView) -> dict[str, Told]:
    """All reports that are known after this look. What a heartbeat tells is of a cell that runs:
    what is known of one that has ended is older, and was told before.
    """
    found = dict(reports) or _of_events(view, chain(*(queue.events for queue in view.queues)))
    for queue in view.queues:
        if queue.heartbeat:
            for one in queue.heartbeat.at_work:
                _add_beat(found, view, queue, one)
    return found


def _add_beat(found: dict[str, Told], view: RunView, queue: QueueView, beat: CellBeat) -> None:
    numbers, cell = _numbers_of_beat(beat), beat.cell
    if not numbers or queue.heartbeat is None:
        return
    if cell not in found:
        found |= _of_events(view, (event for event in queue.events if event.cell == cell))
    told = found.get(cell) or Told(_places(view, {cell})[cell])
    found[cell] = _with(told, queue.heartbeat.at, numbers)


def _numbers_of_beat(beat: CellBeat) -> dict[str, Any]:
    """With those that its log seems to say, where it reports none; by its step, where that counts
    through all epochs.
    """
    guessed, seen = guessed_numbers(beat.progress, beat.seen), beat.seen
    is_whole = bool(guessed) and seen is not None and seen.epoch is None and seen.step is not None
    return (({chart.X: seen.step} if seen and is_whole else {}) | beat.progress) | guessed


def _of_events(view: RunView, events: Iterable[Event]) -> dict[str, Told]:
    rows: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for event in events:
        if event.cell and event.type in ("cell.started", "cell.progress"):
            numbers = event.data.get("progress") or {}
            rows.setdefault(event.cell, []).append((event.at, numbers))
    places = _places(view, rows)
    return {cell: Told(places[cell], _reports(of_cell)) for cell, of_cell in rows.items()}


def _reports(rows: list[tuple[str, Mapping[str, Any]]]) -> tuple[Report, ...]:
    """With the first start, so that the minutes have their zero, and without the others."""
    first, *later = sorted(rows, key=lambda row: row[0])
    told = [first, *(row for row in later if row[1])]
    return _thinned(tuple(_report(first[0], at, numbers) for at, numbers in told))


def _report(first_at: str, at: str, numbers: Mapping[str, Any]) -> Report:
    return Report(at, timestamp.seconds_between(first_at, at) / 60, numbers)


def _with(told: Told, at: str, numbers: Mapping[str, Any]) -> Told:
    """With a report where it is newer than the last one, and another."""
    last = told.reports[-1] if told.reports else None
    if last and (at <= last.at or numbers == last.numbers):
        return told
    new = _report(told.reports[0].at if last else at, at, numbers)
    return replace(told, reports=_thinned((*told.reports, new)))


def _thinned(told: tuple[Report, ...]) -> tuple[Report, ...]:
    while len(told) > _MOST_KEPT:
        told = (*told[:-1:2], told[-1])
    return told


def _places(view: RunView, cells: Iterable[str]) -> dict[str, int]:
    """By index and queue: cells that run beside each other have places beside each other, and a
    line that is appended changes nobody's.
    """
    wanted = dict.fromkeys(cells, 0)
    queues = {queue.name: number for number, queue in enumerate(view.queues)}
    for cell in view.cells if wanted else ():
        if cell.name in wanted:
            wanted[cell.name] = (cell.index or 0) * len(queues) + queues.get(cell.queue, 0)
    return wanted


def draw_curves(reports: Reports, cells: Sequence[str], named: Sequence[str]) -> dict[str, Drawn]:
    """By number, a curve of each of these cells that reported it twice or more; the loss first,
    then the numbers that the job names.
    """
    points = {name: _points(reports[name].reports) for name in cells if name in reports}
    keys = dict.fromkeys(key for one in points.values() for key in one)
    first = headline(dict.fromkeys(keys, 0.0), named)
    wanted = dict.fromkeys([*([first] if first else []), *(n for n in named if n in keys), *keys])
    found: dict[str, Drawn] = {}
    for key in wanted:
        of_cells = {cell: one[key] for cell, one in points.items() if len(one.get(key, [])) > 1}
        made = _drawn(reports, of_cells)
        if made.curves and len(found) < MOST_CHARTS:
            found[key] = made
    return found


def _drawn(reports: Reports, of_cells: Mapping[str, Sequence[Point]]) -> Drawn:
    is_by_step, chosen = chart.on_one_axis(list(of_cells.values()))
    pairs = zip(of_cells, chosen, strict=True)
    made = [_curve(cell, thin(xy, _MOST_KEPT)) for cell, xy in pairs]
    kept = tuple(curve for curve in made if len(curve.places) > 1)[:MOST_CELLS]
    return Drawn(is_by_step, kept, tuple(_look(reports[curve.group].place) for curve in kept))


def _curve(cell: str, xy: Sequence[tuple[float, float]]) -> Curve:
    """Each report is a place, so that one more changes none before it; what is no number is a gap.
    A cell that started over tells some steps again.
    """
    parts: list[list[At]] = [[]]
    for x, y in sorted(xy, key=lambda point: point[0]):
        if math.isfinite(y):
            parts[-1].append(At(x, y, y, y, 1))
        elif parts[-1]:
            parts.append([])
    return Curve(cell, tuple(tuple(part) for part in parts if part))


def _look(place: int) -> str:
    """The cell's own colour and dash for as long as it is drawn."""
    round_, colour = divmod(place, chart.COLOURS)
    return f"c{colour} d{round_ % _DASHES}" if round_ % _DASHES else f"c{colour}"


def _points(told: Sequence[Report]) -> Points:
    points: Points = {}
    for report in told:
        step = _number(report.numbers.get(chart.X))
        for key, value in report.numbers.items():
            y = _number(value)
            if y is not None and key not in NOT_METRICS:
                points.setdefault(key, []).append((step, report.minutes, y))
    # A number that it reports by now is not guessed beside that.
    is_told = {f"{GUESS}{key}" for key in points}
    return {key: of for key, of in points.items() if key not in is_told}


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and not math.isinf(value) else None


# The whole curves of cells that were pulled: of those the journals have a report a minute only.


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
    found = {cell: made for cell in cells if (made := _read_manifest(results, cell))}
    same = {c: known[c] for c, made in found.items() if c in known and known[c].manifest == made}
    new = [cell for cell in found if cell not in same]
    pulled = [Pulled(results.cell(cell), found[cell], tuple(metrics)) for cell in new]
    series = zip(new, cell_series.of_cells(pulled), strict=True)
    return same | {
        c: Whole(found[c], tuple(_reports_of_series(one, found[c]))) for c, one in series
    }


def with_pulled(reports: Reports, whole: Mapping[str, Whole]) -> dict[str, Told]:
    """The reports of the looks, and in their place the whole curves where they are known."""
    places = {cell: told.place for cell, told in reports.items()}
    known = {c: Told(places.get(c, 0), one.reports) for c, one in whole.items() if one.reports}
    return {**reports, **known}


def _read_manifest(results: ResultPaths, cell: str) -> Manifest | None:
    with contextlib.suppress(OSError, DamagedError):
        return manifest.read_manifest(results.manifest(cell))
    return None


def _reports_of_series(series: Series, made: Manifest) -> Iterator[Report]:
    with contextlib.suppress(ValueError):
        began_s, ended_s = manifest.times(made)
        for key, points in series.items():
            times = cell_series.times(points, began_s, ended_s)
            for at, (step, _, value) in zip(times, points, strict=True):
                told = {key: value} if step is None else {chart.X: step, key: value}
                yield Report(made.ended_at, (at - began_s) / 60, told)
