"""What a journal comes to: the state of its queue, and the cells that something happened to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from boxcar.laptop.run.roster import RosterCell
from boxcar.shared import state
from boxcar.shared.cell import begun
from boxcar.shared.files import journal
from boxcar.shared.files.journal import Reading
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import dataclass, replace
from boxcar.shared.state import State


@dataclass(frozen=True)
class Followed:
    """`begun`: each cell once, as it was begun as far as the journal says it."""

    reading: Reading
    state: State
    begun: Sequence[RosterCell]


def followed_journal(path: Path) -> Followed:
    """By all of its events; a missing file has none. Raises DamagedError, OSError."""
    reading = walk_journals(path)
    return Followed(reading, state.replay(reading.events), cells_of_journals(path.stem, reading.events))


def walk_journals(path: Path) -> Reading:
    """A missing file has no events. Raises DamagedError, OSError."""
    data = path.read_bytes() if path.exists() else b""
    return journal.parse_journal(data, str(path))


def cells_of_journals(queue: str, events: Iterable[Event]) -> tuple[RosterCell, ...]:
    told: dict[str, RosterCell] = {}
    for event in events:
        _tell(told, queue, event)
    return tuple(told.values())


def _tell(told: dict[str, RosterCell], queue: str, event: Event) -> None:
    cell = event.data.get("cell")
    if cell is None or not event.type.startswith("cell."):
        return
    if cell not in told:
        told[cell] = RosterCell(cell, queue)
    if event.type in begun.TYPES and begun.tells_begun(event):
        told[cell] = _as_started(told[cell], event)


def _as_started(cell: RosterCell, event: Event) -> RosterCell:
    data = event.data
    task, cfg, epochs = data.get("task", ""), data.get("cfg", ""), data.get("epochs")
    if not cfg:
        return replace(cell, task=task, cfg=cfg, epochs=epochs)
    line = begun.begun_line(event)
    return RosterCell(cell.name, cell.queue, task, cfg, epochs, line.own, line.overrides)
