"""What the agent needs of its journal's events, which it does not keep.

It is brought up to each event as that is written, so that no cell costs a walk over those before.
"""

from __future__ import annotations

from collections.abc import Iterable

from boxcar.shared import state
from boxcar.shared.cell import begun
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.state import State

# Of these the newest about each cell is asked for.
KEPT = ("cell.copied", "cell.retried", "cell.started", "cell.succeeded", "cell.synced")


class Remembered:
    """`newest` is by type, of KEPT, and cell; `begun` says how each cell was started last, here or
    on a box whose result was lent to this one; `started_from` which cell last, by release.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.newest: dict[str, dict[str, Event]] = {type: {} for type in KEPT}
        self.begun: dict[str, Event] = {}
        self.started_from: dict[str, str] = {}
        self.largest_result_bytes = 0
        self._warned: set[tuple[str, str]] = set()
        self._replay = state.Replay()
        self._state: State | None = None
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Raises DamagedError for an event that lacks what its type must say."""
        self._replay.take(event)
        self._state = None
        if event.cell is not None:
            self._take_of_cell(event, event.cell)

    def _take_of_cell(self, event: Event, cell: str) -> None:
        if event.type in self.newest:
            self.newest[event.type][cell] = event
        if begun.tells(event):
            self.begun[cell] = event
        if event.type == "cell.started" and "release" in event.data:
            self.started_from[event.data["release"]] = cell
        elif event.type == "cell.synced":
            size_bytes = event.data.get("size_bytes", 0)
            self.largest_result_bytes = max(self.largest_result_bytes, size_bytes)
        elif event.type == "box.warning":
            self._warned.add((event.data.get("what", ""), cell))

    def state(self) -> State:
        if self._state is None:
            self._state = self._replay.state()
        return self._state

    def was_warned(self, what: str, cell: str) -> bool:
        """Whether it was ever said of that cell, by any agent of this queue."""
        return (what, cell) in self._warned
