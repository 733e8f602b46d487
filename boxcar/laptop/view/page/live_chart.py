"""The charts of the page that is served. Pure.

A curve stands in the numbers that were reported, and the chart moves and stretches all of them at
once. So a report more is a few bytes at the end of its curve, and what was sent before stays. What
lies under the pointer the page's script says.
"""

from __future__ import annotations

from html import escape

from boxcar.laptop.common.units import four_digits
from boxcar.laptop.view.page.cell_curves import Drawn
from boxcar.laptop.view.report import chart
from boxcar.laptop.view.report.chart import Curve, Scale

_MOST_TOLD = 8


def draw(drawn: Drawn, x_name: str, key: str) -> str:
    places = [at for curve in drawn.curves for at in curve.places]
    scale = chart.scale_of([at.x for at in places], [at.mean for at in places])
    curves = "".join(
        f'<path id="{escape(key)}/{escape(curve.group)}" d="{_path(curve)}" class="{look}" '
        f'data-cell="{escape(curve.group)}"/>'
        for curve, look in zip(drawn.curves, drawn.looks, strict=True)
    )
    told = ", ".join(_last(curve) for curve in drawn.curves[:_MOST_TOLD])
    return (
        f'<svg viewBox="0 0 {chart.WIDTH} {chart.HEIGHT}" role="img" '
        f'aria-label="{escape(f"{key} / {x_name}: {told}")}">{chart.axes(scale, x_name, key)}'
        f'<g class="curves" transform="{_transform(scale)}">{curves}</g><text class="told"/></svg>'
    )


def _path(curve: Curve) -> str:
    """A line for each part; one place alone is a dot, which the round end of a line draws."""
    parts = (part if len(part) > 1 else part * 2 for part in curve.parts)
    return "".join(f"M{' '.join(f'{at.x:.6g} {at.mean:.6g}' for at in part)}" for part in parts)


def _transform(scale: Scale) -> str:
    left, right = float(scale.x(scale.x0)), float(scale.x(scale.x1))
    bottom, top = float(scale.y(scale.y0)), float(scale.y(scale.y1))
    wide = (right - left) / ((scale.x1 - scale.x0) or 1.0)
    tall = (top - bottom) / ((scale.y1 - scale.y0) or 1.0)
    moved = (left - scale.x0 * wide, bottom - scale.y0 * tall)
    return f"matrix({wide:.9g} 0 0 {tall:.9g} {moved[0]:.9g} {moved[1]:.9g})"


def _last(curve: Curve) -> str:
    return f"{curve.group} {four_digits(curve.places[-1].mean)}"
