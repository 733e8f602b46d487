"""Charts as SVG text: lines with a band, and a scatter. Pure.

No script: a place under the pointer or the finger shows its values by CSS alone, so that the page
needs nothing that runs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from boxcar.laptop.common.units import four_digits
from boxcar.laptop.view.report.cell_series import Series
from boxcar.shared.metrics.records import thin
from boxcar.shared.record import dataclass

# The curves of a group: the series of its cells, with a band over seeds. Pure.
#
# A gap stays a gap, and NaN is never averaged.


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


WIDTH, HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 26, 34
COLOURS = 8
_TIPS = 40
_SPARK_WIDTH, _SPARK_HEIGHT = 120, 24


@dataclass(frozen=True)
class Scale:
    """From values to pixels along both axes."""

    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, value: float) -> str:
        share = (value - self.x0) / ((self.x1 - self.x0) or 1.0)
        return f"{_LEFT + share * (WIDTH - _LEFT - _RIGHT):.1f}"

    def y(self, value: float) -> str:
        share = (value - self.y0) / ((self.y1 - self.y0) or 1.0)
        return f"{HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM):.1f}"


@dataclass(frozen=True)
class Dot:
    """One group of a scatter."""

    name: str
    x: float
    y: float
    is_marked: bool = False


def looks(curves: Sequence[Curve]) -> list[str]:
    """By their order: as many colours as an eye can tell apart; the others are grey."""
    return [f"c{number}" if number < COLOURS else "rest" for number in range(len(curves))]


def lines(curves: Sequence[Curve], x_name: str, y_name: str, own_looks: Sequence[str] = ()) -> str:
    """'' where there is nothing to draw."""
    shown = [curve for curve in curves if curve.parts]
    if not shown:
        return ""
    places = [at for curve in shown for at in curve.places]
    scale = _scale([at.x for at in places], [v for at in places for v in (at.low, at.high)])
    body = [_axes(scale, x_name, y_name)]
    pairs = zip(shown, own_looks or looks(shown), strict=True)
    body += [_curve(curve, look, scale) for curve, look in reversed(list(pairs))]
    body += [_tip(scale, at, curve.group) for curve in shown[:COLOURS] for at in _some(curve)]
    return _svg(body, f"{y_name}: {len(shown)}")


def scatter(dots: Sequence[Dot], x_name: str, y_name: str) -> str:
    if len(dots) < 2:
        return ""
    scale = _with_room(_scale([dot.x for dot in dots], [dot.y for dot in dots]))
    body = [_axes(scale, x_name, y_name)]
    body += [_dot(dot, number, scale) for number, dot in enumerate(dots)]
    return _svg(body, f"{y_name} / {x_name}")


def spark(
    values: Sequence[float | None], low: float | None = None, high: float | None = None
) -> str:
    """A line without axes for a row of a table, between `low` and `high` or its own extremes; a
    place without a value is a gap. '' of fewer than two values: they would be no line.
    """
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    bottom = min(known) if low is None else low
    height = ((max(known) if high is None else high) - bottom) or 1.0
    step = _SPARK_WIDTH / (len(values) - 1)
    parts: list[list[str]] = [[]]
    for number, value in enumerate(values):
        if value is None:
            parts.append([])
        else:
            y = _SPARK_HEIGHT - 2 - (value - bottom) / height * (_SPARK_HEIGHT - 4)
            parts[-1].append(f"{number * step:.1f},{y:.1f}")
    lines = "".join(f'<polyline points="{" ".join(part)}"/>' for part in parts if len(part) > 1)
    size = f"0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}"
    return f'<svg class="spark c0" viewBox="{size}" aria-hidden="true">{lines}</svg>'


def _scale(xs: Sequence[float], ys: Sequence[float]) -> Scale:
    low, high = min(ys), max(ys)
    room = (high - low) * 0.06 or abs(high) * 0.06 or 1.0
    return Scale(min(xs), max(xs), low - room, high + room)


def _with_room(scale: Scale) -> Scale:
    """A dot is no line: it does not stand on the edge."""
    room = (scale.x1 - scale.x0) * 0.04 or abs(scale.x1) * 0.04 or 1.0
    return Scale(scale.x0 - room, scale.x1 + room, scale.y0, scale.y1)


def _curve(curve: Curve, look: str, scale: Scale) -> str:
    parts = []
    for part in curve.parts:
        if any(at.n > 1 for at in part):
            there = [f"{scale.x(at.x)},{scale.y(at.high)}" for at in part]
            back = [f"{scale.x(at.x)},{scale.y(at.low)}" for at in reversed(part)]
            parts.append(f'<polygon class="band" points="{" ".join(there + back)}"/>')
        line = " ".join(f"{scale.x(at.x)},{scale.y(at.mean)}" for at in part)
        parts.append(f'<polyline points="{line}"/>')
    return f'<g class="{look}">{"".join(parts)}<title>{escape(curve.group)}</title></g>'


def _some(curve: Curve) -> list[At]:
    places = curve.places
    return places[:: max(1, len(places) // _TIPS)]


def _tip(scale: Scale, at: At, name: str) -> str:
    x, y = scale.x(at.x), scale.y(at.mean)
    anchor = "end" if float(x) > WIDTH / 2 else "start"
    words = f"{name}  {four_digits(at.mean)} @ {four_digits(at.x)}"
    return (
        f'<g class="tip"><circle cx="{x}" cy="{y}" r="7"/>'
        f'<text x="{x}" y="{_TOP + 10}" text-anchor="{anchor}">{escape(words)}</text></g>'
    )


def _dot(dot: Dot, number: int, scale: Scale) -> str:
    x, y = scale.x(dot.x), scale.y(dot.y)
    anchor = "end" if float(x) > WIDTH / 2 else "start"
    words = f"{dot.name}  {four_digits(dot.y)} @ {four_digits(dot.x)}"
    colour = f"c{number}" if number < COLOURS else "rest"
    return (
        f'<g class="tip {colour}{" marked" if dot.is_marked else ""}">'
        f'<circle class="dot" cx="{x}" cy="{y}" r="5"/>'
        f'<text x="{x}" y="{_TOP + 10}" text-anchor="{anchor}">{escape(words)}</text></g>'
    )


def _axes(scale: Scale, x_name: str, y_name: str) -> str:
    marks = [
        f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{scale.y(v)}" '
        f'y2="{scale.y(v)}"/><text x="{_LEFT - 6}" y="{scale.y(v)}" class="y">{four_digits(v)}'
        "</text>"
        for v in ticks(scale.y0, scale.y1)
    ]
    marks += [
        f'<text x="{scale.x(v)}" y="{HEIGHT - _BOTTOM + 16}" class="x">{four_digits(v)}</text>'
        for v in ticks(scale.x0, scale.x1)
    ]
    named = (
        f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 4}" class="name end">{escape(x_name)}</text>'
        f'<text x="4" y="{_TOP - 14}" class="name">{escape(y_name)}</text>'
    )
    return f'<g class="axes">{"".join(marks)}{named}</g>'


def ticks(low: float, high: float) -> list[float]:
    """Three to seven round numbers between two."""
    width = high - low
    if not width > 0 or not math.isfinite(width):
        return [low]
    step = 10.0 ** math.floor(math.log10(width / 3))
    step *= next(many for many in (1, 2, 5, 10) if width / (step * many) <= 6)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _svg(body: Sequence[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_attribute(label)}">'
        f"{''.join(body)}</svg>"
    )


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
