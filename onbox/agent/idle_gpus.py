"""Whether the GPUs of this box idle while a cell runs, which nobody sees who sleeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxcar.shared.news.wanted import IDLE_FOR_S, IDLE_PERCENT

# Whoever looks less often than that was suspended: nobody knows what the GPUs did meanwhile.
LONGEST_GAP_S = 120.0


class IdleGpus:
    """Follows them look by look. Each attempt is told of once."""

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._looked_s = 0.0
        self._of: tuple[str, int | None] | None = None
        self._told: tuple[str, int | None] | None = None

    def look(
        self, cell: str | None, attempt: int | None, rows: Sequence[Any], now_s: float
    ) -> dict[str, Any] | None:
        """What an event says of it: cell, attempt, percent of the busiest card, seconds and text;
        None where there is nothing to tell. `now_s` is of a clock that never goes back.
        """
        busiest = _busiest_percent(rows)
        is_same = (cell, attempt) == self._of and now_s - self._looked_s <= LONGEST_GAP_S
        self._looked_s = now_s
        if cell is None or busiest is None or busiest >= IDLE_PERCENT:
            self._since_s = self._of = None
            return None
        if not is_same or self._since_s is None:
            self._since_s, self._of = now_s, (cell, attempt)
        idle_s = now_s - self._since_s
        if idle_s < IDLE_FOR_S or self._told == self._of:
            return None
        self._told = self._of
        text = (
            f"every GPU is under {IDLE_PERCENT:.0f} % for {idle_s / 60:.0f} min while {cell} runs"
        )
        about = {"percent": round(busiest), "seconds": round(idle_s), "text": text}
        return {"cell": cell, "attempt": attempt} | about


def _busiest_percent(rows: Sequence[Any]) -> float | None:
    """None where no card says it."""
    told = [row.get("utilization_percent") for row in rows if isinstance(row, dict)]
    return max((float(one) for one in told if isinstance(one, (int, float))), default=None)
