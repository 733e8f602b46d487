"""`python -m bench.plots FIGURES.json FOLDER`: how cost grows with cells, boxes and sizes, as SVGs;
those of which the figures have something.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.growth import STRAIGHT

Points = dict[str, list[tuple[float, float]]]
# By the part of the bench: what is counted there; the title, and the words at the two axes.
PLOTS = {
    "growth": ("cells", "CPU of a verb, by the cells of the run", "cells", "s of CPU"),
    "boxes": ("boxes", "Time to ask boxes over ssh, by their number", "boxes", "s"),
    "copies": ("MiB", "A copy with proof, by the size of the file", "MiB", "s"),
}
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 700, 360, 64, 36, 250, 44
_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    *("#000000", "#8b4513", "#7f7f7f"),
)


def main() -> int:
    figures, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    for part, (unit, *words) in PLOTS.items():
        if lines := points(figures, part, unit):
            (folder / f"performance-{part}.svg").write_text(svg(*words, lines))
    return 0


def points(figures: dict[str, Any], part: str, unit: str) -> Points:
    """Ours at each number of `unit` by what is measured, and each peer beside it by its name."""
    found: dict[str, dict[float, float]] = {}
    for row in figures["parts"].get(part, []):
        if match := re.fullmatch(rf"(.+), (\d+) {unit}", row["what"]):
            at = float(match[2])
            found.setdefault(match[1], {})[at] = row["value"]
            if row["peer"] is not None and row["peer_name"] != STRAIGHT:
                found.setdefault(row["peer_name"], {})[at] = row["peer"]
    return {name: list(some.items()) for name, some in found.items()}


def svg(title: str, across: str, up: str, lines: Points) -> str:
    """Both axes are logarithmic: what grows with the cells alone ends as a line of slope one."""
    xs = [x for some in lines.values() for x, _ in some]
    ys = [y for some in lines.values() for _, y in some]
    x_axis, y_axis = _decades(xs), _decades(ys)

    def at(x: float, y: float) -> tuple[float, float]:
        along = _share(x, x_axis) * (_WIDTH - _LEFT - _RIGHT)
        height = _share(y, y_axis) * (_HEIGHT - _TOP - _BOTTOM)
        return _LEFT + along, _HEIGHT - _BOTTOM - height

    parts = [_text(_LEFT, 20, title, "font-weight='bold'")]
    for x in _ticks(x_axis):
        left, bottom = at(x, y_axis[0])
        parts += [_rule(left, _TOP, left, bottom), _text(left - 8, bottom + 16, f"{x:g}")]
    for y in _ticks(y_axis):
        left, height = at(x_axis[0], y)
        parts += [_rule(left, height, _WIDTH - _RIGHT, height), _text(24, height + 4, f"{y:g}")]
    parts += [_text(_WIDTH - _RIGHT - 30, _HEIGHT - 8, across), _text(8, _TOP - 6, up)]
    for number, (name, some) in enumerate(lines.items()):
        parts += _line(name, [at(x, y) for x, y in sorted(some)], number)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>'
        + "\n".join(parts)
        + "</svg>\n"
    )


def _decades(values: Iterable[float]) -> tuple[float, float]:
    some = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(some))), math.ceil(math.log10(max(some)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def _ticks(axis: tuple[float, float]) -> list[float]:
    low, high = (round(math.log10(end)) for end in axis)
    return [10.0**power for power in range(low, high + 1)]


def _share(value: float, axis: tuple[float, float]) -> float:
    low, high = (math.log10(end) for end in axis)
    return (math.log10(max(value, axis[0])) - low) / (high - low)


def _line(name: str, places: list[tuple[float, float]], number: int) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    key = _TOP + 16 * number
    left = _WIDTH - _RIGHT + 16
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places),
        f'<rect x="{left}" y="{key}" width="10" height="10" fill="{colour}"/>',
        _text(left + 15, key + 9, name),
    ]


def _rule(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{words}</text>'


if __name__ == "__main__":
    sys.exit(main())
