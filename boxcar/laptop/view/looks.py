"""How what is shown looks, on a terminal as on the page: words for it, signs, rows of bars. Pure.

A sign stands beside its word or below the title of its group, so no state is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite

from boxcar.shared.record import dataclass

# How a field may look. A terminal's own 16 colours, so that each theme stays readable; never alone.
GOOD, BUSY, BAD, WARN = "good", "busy", "bad", "warn"
BOLD, DIM = "bold", "dim"


@dataclass(frozen=True)
class Glyphs:
    verified: str = "✓"
    running: str = "▶"
    failed: str = "✗"
    queued: str = "·"
    trouble: str = "!"
    dropped: str = "–"
    between: str = "·"
    rule: str = "─"
    mark: str = "…"  # where something was cut
    levels: str = "▁▂▃▄▅▆▇█"
    full: str = "━"  # of a bar: what is done, what failed, what is left
    broken: str = "╳"
    empty: str = "─"
    up: str = "↑"
    down: str = "↓"


# For a terminal that cannot show the others: the console of Linux, or an encoding without them.
ASCII = Glyphs("+", ">", "x", ".", "!", "-", "|", "-", "~", "_.-:=*#@", "#", "x", ".", "^", "v")
UNICODE = Glyphs()

# Of each state's word: the attribute of Glyphs, and the look.
_STATES = {
    "verified": ("verified", GOOD),
    **dict.fromkeys(("running", "claimed", "succeeded", "synced", "settling"), ("running", BUSY)),
    "retrying": ("trouble", WARN),
    "preempted": ("queued", WARN),
    "failed": ("failed", BAD),
    "damaged": ("failed", BAD),
    "unknown": ("trouble", WARN),
    **dict.fromkeys(("dropped", "abandoned"), ("dropped", DIM)),
    "queued": ("queued", DIM),
}


def glyphs_of_terminal(encoding: str | None, environ: Mapping[str, str]) -> Glyphs:
    """What a terminal of this encoding can show."""
    try:
        "".join((*vars(UNICODE).values(),)).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return ASCII if environ.get("TERM") == "linux" else UNICODE


def state_glyph(word: str, glyphs: Glyphs) -> tuple[str, str]:
    """The sign of a cell's state, and its look."""
    name, look = _STATES.get(word, ("trouble", WARN))
    return getattr(glyphs, name), look


@dataclass(frozen=True)
class Bars:
    """What was measured, for a row of bars: `values` in their order or, of the last `span_s`
    seconds, each with how long ago it was. A place without a measurement stays empty.
    """

    values: Sequence[float] = ()
    ago_s: Sequence[float] = ()
    span_s: float = 0.0
    low: float | None = None
    high: float | None = None

    def heights(self, bars: int) -> list[float | None]:
        """The mean of each bar's part, the newest last; at most `bars` of them."""
        if self.span_s:
            return _over_time(self.ago_s, self.values, self.span_s, bars)
        found = [value for value in self.values if isfinite(value)]
        if len(found) <= bars:
            return list(found)
        edges = [round(place * len(found) / bars) for place in range(bars + 1)]
        parts = [found[a:b] for a, b in pairwise(edges)]
        # From the first one on: else rounding would make the mean of equal values another value,
        # and of a level line hills.
        return [part[0] + sum(value - part[0] for value in part) / len(part) for part in parts]


def _over_time(
    ago_s: Sequence[float], values: Sequence[float], span_s: float, bars: int
) -> list[float | None]:
    sums, counts = [0.0] * bars, [0] * bars
    for ago, value in zip(ago_s, values, strict=True):
        place = bars - 1 - int(ago / span_s * bars)
        if 0 <= place < bars and isfinite(value):
            sums[place] += value
            counts[place] += 1
    return [total / n if n else None for total, n in zip(sums, counts, strict=True)]
