"""A row of small bars for what was measured. Pure.

A place without a measurement is blank, and fewer than two make no row at all: what nobody has seen
must not look like a flat line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite

Sample = tuple[float, float]  # seconds before now, and the value


def over_time(samples: Sequence[Sample], span_s: float, bars: int) -> list[float | None]:
    """The mean of each of `bars` equal parts of the last `span_s` seconds, the newest last."""
    sums, counts = [0.0] * bars, [0] * bars
    for ago_s, value in samples:
        place = bars - 1 - int(ago_s / span_s * bars)
        if 0 <= place < bars and isfinite(value):
            sums[place] += value
            counts[place] += 1
    return [total / n if n else None for total, n in zip(sums, counts, strict=True)]


def in_order(values: Sequence[float], bars: int) -> list[float | None]:
    """The newest last; of more than `bars` values each bar is the mean of some neighbours."""
    found = [value for value in values if isfinite(value)]
    if len(found) <= bars:
        return list(found)
    edges = [round(place * len(found) / bars) for place in range(bars + 1)]
    parts = [found[a:b] for a, b in pairwise(edges)]
    return [sum(part) / len(part) for part in parts]


def sparkline(
    values: Sequence[float | None], levels: str, low: float | None = None, high: float | None = None
) -> str:
    """The bars, between `low` and `high`, or between the least and the greatest of them."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    bottom = min(known) if low is None else low
    top = max(known) if high is None else high
    return "".join(_bar(value, bottom, top, levels) for value in values)


def _bar(value: float | None, bottom: float, top: float, levels: str) -> str:
    if value is None:
        return " "
    part = (value - bottom) / (top - bottom) if top > bottom else 0.0
    return levels[min(len(levels) - 1, max(0, int(part * len(levels))))]
