"""The curves of a group: the series of its cells, with a band over seeds. Pure.

A gap stays a gap, and NaN is never averaged.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

from boxcar.laptop.report.cell_series import Series
from boxcar.shared.metrics.thin import thin
from boxcar.shared.record import dataclass

# Places of a chart, and what they are the means of.
MOST_POINTS, _MOST_OF_SERIES = 120, 480
_GAP = 5.0
X = "step"

# Its step, where it told one; its number, or the minutes; the value.
Point = tuple[float | None, float, float]
Points = dict[str, list[Point]]


@dataclass(frozen=True)
class At:
    """One place of a curve: mean and range over the seeds that have a value there."""

    x: float
    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Curve:
    """One group's; `parts` are what lies between gaps."""

    group: str
    parts: tuple[tuple[At, ...], ...]

    @property
    def places(self) -> list[At]:
        return [at for part in self.parts for at in part]


def points_of(series: Series) -> Points:
    found: Points = {}
    for key, points in series.items():
        numbered = list(enumerate(points, start=1))
        kept = thin(numbered, _MOST_OF_SERIES)
        found[key] = [(step, float(number), y) for number, (step, _, y) in kept]
    return found


def on_one_axis(cells: Sequence[Sequence[Point]]) -> tuple[bool, list[list[tuple[float, float]]]]:
    """The points of the cells of a chart: by step where all of them tell steps, and then without
    what came before the first one; else none is. True: by step.
    """
    is_by_step = all(sum(s is not None for s, _, _ in one) > len(one) / 2 for one in cells if one)
    chosen = [[(step if is_by_step else other, y) for step, other, y in one] for one in cells]
    return is_by_step, [[(x, y) for x, y in one if x is not None] for one in chosen]


def curve(group: str, seeds: Sequence[Iterable[tuple[float, float]]], gap: float = _GAP) -> Curve:
    """Of the points of each seed. Places are as many as a chart can show, and hold the same steps
    for all seeds. `gap`: so many times the usual distance between two reports is one.
    """
    pairs = [list(points) for points in seeds]
    xs = [x for points in pairs for x, _ in points]
    if not xs:
        return Curve(group, ())
    first, last = min(xs), max(xs)
    width = max((last - first) / MOST_POINTS, 1e-12)
    bins: dict[int, list[list[tuple[float, float]]]] = {}
    for seed, points in enumerate(pairs):
        for x, y in points:
            kept = bins.setdefault(int((x - first) / width), [[] for _ in pairs])
            kept[seed].append((x, y))
    return Curve(group, tuple(_parts(bins, gap)))


def _parts(bins: dict[int, list[list[tuple[float, float]]]], gap: float) -> list[tuple[At, ...]]:
    """Cut where a place has a value that is no number, and where reports are missing."""
    parts: list[list[At]] = [[]]
    numbers = sorted(bins)
    distances = [after - before for before, after in pairwise(numbers)]
    usual = statistics.median(distances) if distances else 1
    for number, distance in zip(numbers, [0, *distances], strict=True):
        at = _at(bins[number])
        if (at is None or distance > gap * usual) and parts[-1]:
            parts.append([])
        if at is not None:
            parts[-1].append(at)
    return [tuple(part) for part in parts if part]


def _at(seeds: Sequence[Sequence[tuple[float, float]]]) -> At | None:
    finite = [[p for p in points if math.isfinite(p[1])] for points in seeds]
    means = [statistics.fmean(y for _, y in points) for points in finite if points]
    if not means:
        return None
    x = statistics.fmean(x for points in finite for x, _ in points)
    return At(x, statistics.fmean(means), min(means), max(means), len(means))
