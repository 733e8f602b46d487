"""How many cells of a queue are left, and for how long, by its journal alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from boxcar.shared import state
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import dataclass

_OVER = (state.Verified, state.Failed)


@dataclass(frozen=True)
class Standing:
    """`left_s` is None where no cell was verified yet, so nobody knows how long one takes."""

    cells: int
    left: int
    left_s: float | None = None


def standing(events: Sequence[Event]) -> Standing | None:
    """After these events of one queue; None where they do not say how many cells it has."""
    counts = [event.data.get("cells") for event in events if event.type == "queue.started"]
    if not counts or not isinstance(counts[-1], int):
        return None
    try:
        records = state.replay(events).cells.values()
    except DamagedError:
        return None
    # Lines may be added while it runs: a cell that was begun counts, though the start knew less.
    cells = max(counts[-1], len(records))
    left = cells - sum(isinstance(record.state, _OVER) for record in records)
    took_s = [r.seconds for r in records if isinstance(r.state, state.Verified) and r.seconds]
    left_s = left * statistics.mean(took_s) if took_s else None
    return Standing(cells, left, left_s)
