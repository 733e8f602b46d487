"""How many cells of a queue are left, and for how long, by its journal alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

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


class Tally:
    """Follows a journal event by event: of each it keeps what is known of its cell."""

    def __init__(self) -> None:
        self._replay = state.Replay()
        self._cells: int | None = None
        self._is_known = True

    def take(self, event: Event | None) -> None:
        """None is an event that cannot be read: then nobody knows what is left."""
        if event is None:
            self._is_known = False
            return
        if event.type == "queue.started":
            cells = event.data.get("cells")
            self._cells = cells if isinstance(cells, int) else None
        try:
            self._replay.take(event)
        except DamagedError:
            self._is_known = False

    def standing(self) -> Standing | None:
        """None where the events do not say how many cells there are."""
        if self._cells is None or not self._is_known:
            return None
        records = self._replay.state().cells.values()
        # Lines may be added while it runs: a cell that was begun counts, though the start knew
        # less.
        cells = max(self._cells, len(records))
        left = cells - sum(isinstance(record.state, _OVER) for record in records)
        took_s = [r.seconds for r in records if isinstance(r.state, state.Verified) and r.seconds]
        left_s = left * statistics.mean(took_s) if took_s else None
        return Standing(cells, left, left_s)


def standing(events: Iterable[Event]) -> Standing | None:
    """After these events of one queue."""
    tally = Tally()
    for event in events:
        tally.take(event)
    return tally.standing()
