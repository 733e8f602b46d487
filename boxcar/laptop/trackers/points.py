"""A cell's series as trackers take them: by whole steps, each with a time of the training.

NaN stays NaN, and a gap stays a gap. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxcar.laptop.report import cell_series
from boxcar.laptop.trackers.exported_cell import Point
from boxcar.shared.metrics import records


def points_of_series(
    series: Mapping[str, Sequence[records.Point]], began_s: float, ended_s: float
) -> tuple[Point, ...]:
    """In the order of the steps. Where a step was said twice, what was said last counts."""
    values: dict[int, dict[str, float]] = {}
    times: dict[int, float] = {}
    for key, points in series.items():
        is_timed = any(at is not None for _, at, _ in points)
        places = zip(_steps(points), cell_series.times(points, began_s, ended_s), strict=True)
        for (step, at), (_, _, value) in zip(places, points, strict=True):
            values.setdefault(step, {})[key] = value
            if is_timed or step not in times:
                times[step] = at
    return tuple(Point(step, times[step], values[step]) for step in sorted(values))


def _steps(points: Sequence[records.Point]) -> list[int]:
    """The script's own, else their numbers: half an epoch is no step to a tracker."""
    if any(step is not None and step != int(step) for step, _, _ in points):
        return list(range(1, len(points) + 1))
    return [
        number if step is None else int(step) for number, (step, _, _) in enumerate(points, start=1)
    ]
