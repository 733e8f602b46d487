"""The charts of the page that is served. Pure.

A curve stands in the numbers that were reported, and the chart moves and stretches all of them at
once. So a report more is a few bytes at the end of its curve, and what was sent before stays. What
lies under the pointer the page's script says.
"""

from __future__ import annotations

from html import escape

from boxcar.laptop.common.units import four_digits
from boxcar.laptop.view.page.cell_curves import Drawn
from boxcar.laptop.view.report.chart import Curve, ticks
from boxcar.shared.record import dataclass

_MOST_TOLD, _X_LETTERS = 8, 24


@dataclass(frozen=True)
class _Window:
    """What of the numbers is seen."""

    left: float
    right: float
    bottom: float
    top: float

    def x(self, value: float) -> float:
        return 100 * (value - self.left) / (self.right - self.left)

    def y(self, value: float) -> float:
        return 100 * (self.top - value) / (self.top - self.bottom)

    @property
    def transform(self) -> str:
        """Of a drawing of 100 by 100, so that a curve in its own numbers stands in the window."""
        wide, tall = 100 / (self.right - self.left), 100 / (self.bottom - self.top)
        moved = f"{-self.left * wide:.9g} {-self.top * tall:.9g}"
        return f"matrix({wide:.9g} 0 0 {tall:.9g} {moved})"


def draw(drawn: Drawn, x_name: str, key: str) -> str:
    """The axes in HTML around the curves, so that their text has one size at every width."""
    seen = _window(drawn)
    curves = "".join(
        f'<path id="{escape(key)}/{escape(curve.group)}" d="{_path(curve)}" class="{look}" '
        f'data-cell="{escape(curve.group)}"/>'
        for curve, look in zip(drawn.curves, drawn.looks, strict=True)
    )
    ys = [(seen.y(v), four_digits(v)) for v in ticks(seen.bottom, seen.top)]
    marks = [f'<hr style="top:{y:.1f}%"><b class="y" style="top:{y:.1f}%">{t}</b>' for y, t in ys]
    marks += [f'<b class="x" style="left:{seen.x(v):.1f}%">{four_digits(v)}</b>' for v in _xs(seen)]
    told = ", ".join(_last(curve) for curve in drawn.curves[:_MOST_TOLD])
    return (
        f'<div class="plot" role="img" aria-label="{escape(f"{key} / {x_name}: {told}")}" '
        f'style="--left:{max(len(text) for _, text in ys)}ch;--right:0ch"><div>{"".join(marks)}'
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none"><g class="curves" '
        f'transform="{seen.transform}">{curves}</g></svg></div>'
        f'<b class="under">{escape(x_name)}</b><b class="told"></b><b class="range"></b></div>'
    )


def _window(drawn: Drawn) -> _Window:
    """All of it, with some room above and below."""
    xs, ys = zip(*((at.x, at.mean) for curve in drawn.curves for at in curve.places), strict=True)
    low, high, left, right = min(ys), max(ys), min(xs), max(xs)
    room = (high - low) * 0.06 or abs(high) * 0.06 or 1.0
    return _Window(left, right if right > left else left + 1, low - room, high + room)


def _path(curve: Curve) -> str:
    """A line for each part; one place alone is a dot, which the round end of a line draws."""
    parts = (part if len(part) > 1 else part * 2 for part in curve.parts)
    return "".join(f"M{' '.join(f'{at.x:.6g} {at.mean:.5g}' for at in part)}" for part in parts)


def _xs(seen: _Window) -> list[float]:
    """As many as have room on a phone."""
    found = ticks(seen.left, seen.right)
    return found[:: 1 + sum(len(four_digits(v)) + 1 for v in found) // _X_LETTERS]


def _last(curve: Curve) -> str:
    return f"{curve.group} {four_digits(curve.places[-1].mean)}"
