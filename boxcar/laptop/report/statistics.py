"""Mean, spread, and the interval of a difference. Pure.

The interval is Welch's: two groups, neither of the same size nor of the same variance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from boxcar.shared.record import dataclass

# Of fewer seeds an interval would say nothing.
LEAST = 3
# Student's t for 95 %, by degrees of freedom; a standard table, rounded to three digits.
_T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160),
    *(2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056),
    *(2.052, 2.048, 2.045, 2.042),
)


@dataclass(frozen=True)
class Spread:
    """Of `n` finite values; `std` is that of a sample, None of fewer than two."""

    n: int
    mean: float
    std: float | None


@dataclass(frozen=True)
class Difference:
    """Of two means; `half_width` of its 95 % interval, None where a side has fewer than LEAST."""

    mean: float
    half_width: float | None


def spread_of(values: Sequence[float]) -> Spread | None:
    """None of nothing. Raises ValueError for a value that is not finite: it is never averaged."""
    if not values:
        return None
    if not all(map(math.isfinite, values)):
        raise ValueError(f"expected finite values, found {list(values)}")
    std = statistics.stdev(values) if len(values) > 1 else None
    return Spread(len(values), statistics.fmean(values), std)


def difference_of(one: Spread, base: Spread) -> Difference:
    return Difference(one.mean - base.mean, _half_width(one, base))


def _half_width(one: Spread, base: Spread) -> float | None:
    if min(one.n, base.n) < LEAST or one.std is None or base.std is None:
        return None
    parts = [(side.std or 0.0) ** 2 / side.n for side in (one, base)]
    if not sum(parts):
        return 0.0
    below = sum(p**2 / (s.n - 1) for p, s in zip(parts, (one, base), strict=True))
    return t_95(sum(parts) ** 2 / below) * math.sqrt(sum(parts))


def t_95(degrees: float) -> float:
    """Rounded down to the next row of the table, so an interval is never too narrow."""
    row = max(1, math.floor(degrees + 1e-9))
    if row <= len(_T_95):
        return _T_95[row - 1]
    return next((t for least, t in ((120, 1.980), (60, 2.000), (40, 2.021)) if row >= least), 2.042)
