"""The curves of the cells: what their journals have of the numbers that they report, once a minute,
and what came between with each look.

Nothing is read: a box that cannot be reached has the curves of its last report. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from boxcar.laptop.board.cell_rows import headline
from boxcar.laptop.report import curves
from boxcar.laptop.report.curves import Curve, Points
from boxcar.laptop.run.view import RunView
from boxcar.shared.metrics.not_metrics import NOT_METRICS

# As many as an eye and a page can hold. Cells that run come first, then the newest results.
MOST_CELLS, MOST_CHARTS = 40, 12
# Of one cell; of more each second one is dropped, so that days of looks stay small.
_MOST_KEPT = 600

Report = Mapping[str, Any]
# By cell, oldest first.
Reports = Mapping[str, tuple[Report, ...]]


def seen(reports: Reports, view: RunView) -> dict[str, tuple[Report, ...]]:
    """All reports that are known after this look."""
    found = _of_journals(view) if not reports else dict(reports)
    for cell in view.cells:
        told = found.get(cell.name, ())
        if cell.progress and told[-1:] != (cell.progress,):
            found[cell.name] = _thinned((*told, cell.progress))
    return found


def _of_journals(view: RunView) -> dict[str, tuple[Report, ...]]:
    found: dict[str, list[Report]] = {}
    for queue in view.queues:
        for event in queue.events:
            if event.type == "cell.progress" and event.cell:
                found.setdefault(event.cell, []).append(event.data.get("progress") or {})
    return {cell: tuple(told) for cell, told in found.items()}


def _thinned(told: tuple[Report, ...]) -> tuple[Report, ...]:
    return told if len(told) <= _MOST_KEPT else (*told[:-1:2], told[-1])


def drawn(
    reports: Reports, cells: Sequence[str], named: Sequence[str]
) -> dict[str, tuple[Curve, ...]]:
    """By number, a curve of each of these cells that reported it twice or more; the loss first,
    then the numbers that the job names.
    """
    points = {name: _points(reports[name]) for name in cells if name in reports}
    keys = dict.fromkeys(key for one in points.values() for key in one)
    first = headline(dict.fromkeys(keys, 0.0), named)
    wanted = dict.fromkeys([*([first] if first else []), *(n for n in named if n in keys), *keys])
    found: dict[str, tuple[Curve, ...]] = {}
    for key in wanted:
        made = [curves.curve(cell, [one.get(key, [])]) for cell, one in points.items()]
        kept = tuple(one for one in made if len(one.places) > 1)[:MOST_CELLS]
        if kept and len(found) < MOST_CHARTS:
            found[key] = kept
    return found


def _points(told: Sequence[Report]) -> Points:
    """Of each number its values, at their steps, else by the number of the report."""
    points: Points = {}
    for number, report in enumerate(told, start=1):
        x = _number(report.get(curves.X))
        for key, value in report.items():
            y = _number(value)
            if y is not None and key not in NOT_METRICS:
                points.setdefault(key, []).append((float(number) if x is None else x, y))
    return points


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and not math.isinf(value) else None
