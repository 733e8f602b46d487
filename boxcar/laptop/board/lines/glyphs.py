"""The signs of the board: one for each state of a cell, and what lines are drawn with.

A sign stands beside its word or below the title of its group, so no state is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.laptop.board.lines.line import BAD, BUSY, DIM, GOOD, WARN
from boxcar.shared.record import dataclass


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


# For a terminal that cannot show the others: the console of Linux, or an encoding without them.
ASCII = Glyphs("+", ">", "x", ".", "!", "-", "|", "-", "~", "_.-:=*#@")
UNICODE = Glyphs()

# Of each state's word: the attribute of Glyphs, and the look.
_STATES = {
    "verified": ("verified", GOOD),
    "running": ("running", BUSY),
    "claimed": ("running", BUSY),
    "succeeded": ("running", BUSY),
    "synced": ("running", BUSY),
    "retrying": ("trouble", WARN),
    "preempted": ("queued", WARN),
    "failed": ("failed", BAD),
    "damaged": ("failed", BAD),
    "unknown": ("trouble", WARN),
    "dropped": ("dropped", DIM),
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
