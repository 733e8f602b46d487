"""Charts as SVG text: lines with a band, and a scatter. Pure.

No script: a place under the pointer or the finger shows its values by CSS alone, so that the page
needs nothing that runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from boxcar.laptop.common.units import four_digits
from boxcar.laptop.report.curves import At, Curve
from boxcar.shared.record import dataclass

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
