"""Charts as HTML text around SVG: lines with a band, and a scatter. Pure.

No script: a place under the pointer or the finger shows its values by CSS alone, so that the page
needs nothing that runs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from boxcar.laptop.common.units import four_digits
from boxcar.laptop.view.report.cell_series import Series
from boxcar.shared.metrics.records import thin
from boxcar.shared.record import dataclass
from boxcar.shared.text_width import short_name, width_in_cells

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


COLOURS = 8
_TIPS = 40
_SPARK_WIDTH, _SPARK_HEIGHT = 120, 24
# In percent of a plot's height: a line of text. In percent of its width, and of a name's letter,
# as on the narrowest phone: what does not meet there meets nowhere.
_LINE, _LETTER, _BESIDE = 7.0, 2.4, 4.0
_NAME, _LONG, _X_LETTERS, _ALL_NAMED = 20, 14, 24, 20


@dataclass(frozen=True)
class Scale:
    """From values to percent of a plot, from its left and from its top."""

    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, value: float) -> float:
        return 100 * (value - self.x0) / ((self.x1 - self.x0) or 1.0)

    def y(self, value: float) -> float:
        return 100 - 100 * (value - self.y0) / ((self.y1 - self.y0) or 1.0)


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
    """HTML, '' where there is nothing to draw. Up to COLOURS curves have their names at their ends;
    of more somebody has to make a legend.
    """
    shown = [curve for curve in curves if curve.parts]
    if not shown:
        return ""
    places = [at for curve in shown for at in curve.places]
    scale = _scale([at.x for at in places], [v for at in places for v in (at.low, at.high)])
    pairs = list(zip(shown, own_looks or looks(shown), strict=True))
    drawn = "".join(_curve(curve, look, scale) for curve, look in reversed(pairs))
    body = [
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'
    ]
    body += [
        _tip(scale, at.x, at.mean, curve.group) for curve in shown[:COLOURS] for at in _some(curve)
    ]
    named = pairs if len(pairs) <= COLOURS else []
    body += _end_names(named, scale)
    said = (
        f"{curve.group} {four_digits(curve.places[0].mean)} → {four_digits(curve.places[-1].mean)}"
        for curve in shown[:COLOURS]
    )
    return _keys(named) + _plot(scale, body, x_name, f"{y_name}: {'; '.join(said)}", _widest(named))


def scatter(dots: Sequence[Dot], x_name: str, y_name: str) -> str:
    """HTML, '' of fewer than two. A dot has its name beside it, where there is room for it."""
    if len(dots) < 2:
        return ""
    scale = _with_room(_scale([dot.x for dot in dots], [dot.y for dot in dots]))
    named = dict(_beside(dots, scale))
    body = [_dot(dot, at, scale, named.get(at, "")) for at, dot in enumerate(dots)]
    said = "; ".join(f"{dot.name} {_value(dot.x, dot.y)}" for dot in dots[:COLOURS])
    return _plot(scale, body, x_name, f"{y_name} / {x_name}: {said}")


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
    room = (scale.x1 - scale.x0) * 0.06 or abs(scale.x1) * 0.06 or 1.0
    return Scale(scale.x0 - room, scale.x1 + room, scale.y0, scale.y1)


def _curve(curve: Curve, look: str, scale: Scale) -> str:
    parts = []
    for part in curve.parts:
        if any(at.n > 1 for at in part):
            there = [_point(scale, at.x, at.high) for at in part]
            back = [_point(scale, at.x, at.low) for at in reversed(part)]
            parts.append(f'<polygon class="band" points="{" ".join(there + back)}"/>')
        line = " ".join(_point(scale, at.x, at.mean) for at in part)
        parts.append(f'<polyline points="{line}"/>')
    return f'<g class="{look}">{"".join(parts)}</g>'


def _point(scale: Scale, x: float, y: float) -> str:
    return f"{10 * scale.x(x):.0f},{10 * scale.y(y):.0f}"


def _some(curve: Curve) -> list[At]:
    places = curve.places
    return places[:: max(1, len(places) // _TIPS)]


def _value(x: float, y: float) -> str:
    return f"{four_digits(y)} @ {four_digits(x)}"


def _tip(scale: Scale, x: float, y: float, name: str) -> str:
    """What is shown under the pointer or the finger."""
    side = " end" if scale.x(x) > 50 else ""
    return f'<i class="tip{side}" {_place(scale, x, y)}><b>{escape(name)}  {_value(x, y)}</b></i>'


def _place(scale: Scale, x: float, y: float) -> str:
    return f'style="left:{scale.x(x):.1f}%;top:{scale.y(y):.1f}%"'


def _end_names(pairs: Sequence[tuple[Curve, str]], scale: Scale) -> list[str]:
    """Each at the height where its curve ends, and apart from each other."""
    tops = spread([scale.y(curve.places[-1].mean) for curve, _ in pairs], _LINE, 100.0)
    return [
        f'<b class="at {look}" style="top:{top:.1f}%">{escape(short_name(curve.group, _NAME))}</b>'
        for (curve, look), top in zip(pairs, tops, strict=True)
    ]


def _widest(pairs: Sequence[tuple[Curve, str]]) -> int:
    return max((width_in_cells(short_name(curve.group, _NAME)) for curve, _ in pairs), default=0)


def _keys(pairs: Sequence[tuple[Curve, str]]) -> str:
    """Where a phone has no room for long names at the ends, it shows these above."""
    if _widest(pairs) <= _LONG:
        return ""
    keys = (f'<span><i class="key {look}"></i>{escape(c.group)}</span> ' for c, look in pairs)
    return f'<p class="keys">{"".join(keys)}</p>'


def spread(wanted: Sequence[float], distance: float, most: float) -> list[float]:
    """The same order, each at least so far from the next one, and none beyond `most` as long as
    there is room.
    """
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    found = dict.fromkeys(order, 0.0)
    last = -distance
    for at in order:
        last = found[at] = max(wanted[at], last + distance)
    last = most + distance
    for at in reversed(order):
        last = found[at] = min(found[at], last - distance)
    return [found[at] for at in range(len(wanted))]


def _beside(dots: Sequence[Dot], scale: Scale) -> Iterator[tuple[int, str]]:
    """At which side of its dot a name meets no other one and no dot; of many dots the first ones
    have names, those with a colour of their own.
    """
    centres = [(scale.x(dot.x), scale.y(dot.y)) for dot in dots]
    taken = [(x - _BESIDE / 2, y - _LINE / 2, x + _BESIDE / 2, y + _LINE / 2) for x, y in centres]
    for number, (x, y) in enumerate(centres[: None if len(dots) <= _ALL_NAMED else COLOURS]):
        width = _LETTER * width_in_cells(short_name(dots[number].name, _NAME))
        for side, left, middle in (
            ("right", x + _BESIDE / 2, y),
            ("left", x - _BESIDE / 2 - width, y),
            ("above", x - width / 2, y - _LINE),
            ("below", x - width / 2, y + _LINE),
        ):
            box = (left, middle - _LINE / 2, left + width, middle + _LINE / 2)
            if left >= 0 and box[2] <= 100 and not any(_meet(box, other) for other in taken):
                taken.append(box)
                yield number, side
                break


_Box = tuple[float, float, float, float]


def _meet(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _dot(dot: Dot, number: int, scale: Scale, side: str) -> str:
    look = f"c{number}" if number < COLOURS else "rest"
    name = f'<b class="{side}">{escape(short_name(dot.name, _NAME))}</b>' if side else ""
    look += " marked" if dot.is_marked else ""
    tip = _tip(scale, dot.x, dot.y, dot.name)
    return f'<i class="dot {look}" {_place(scale, dot.x, dot.y)}>{name}</i>{tip}'


def _plot(scale: Scale, body: Sequence[str], x_name: str, label: str, right: int = 0) -> str:
    """The axes in HTML around what is drawn, so that their text has one size at every width."""
    rows = [(scale.y(v), four_digits(v)) for v in ticks(scale.y0, scale.y1)]
    marks = [f'<hr style="top:{y:.1f}%"><b class="y" style="top:{y:.1f}%">{t}</b>' for y, t in rows]
    marks += [
        f'<b class="x" style="left:{scale.x(v):.1f}%">{four_digits(v)}</b>' for v in _x_ticks(scale)
    ]
    left = max(len(text) for _, text in rows)
    return (
        f'<div class="plot" role="img" aria-label="{escape(label, {chr(34): "&quot;"})}" '
        f'style="--left:{left}ch;--right:{right}ch"><div>{"".join([*marks, *body])}</div>'
        f'<b class="under">{escape(x_name)}</b></div>'
    )


def _x_ticks(scale: Scale) -> list[float]:
    """As many as have room on the narrowest phone."""
    found = ticks(scale.x0, scale.x1)
    return found[:: 1 + sum(len(four_digits(v)) + 1 for v in found) // _X_LETTERS]


def ticks(low: float, high: float) -> list[float]:
    """Three to seven round numbers between two."""
    width = high - low
    if not width > 0 or not math.isfinite(width):
        return [low]
    step = 10.0 ** math.floor(math.log10(width / 3))
    step *= next(many for many in (1, 2, 5, 10) if width / (step * many) <= 6)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]
