"""What a journal comes to: the state of its queue, and the cells that something happened to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


# Raises DamagedError, OSError.
Follow = Callable[[Path], Followed]


def of_path(path: Path) -> Followed:
    """By all of its events. Raises DamagedError, OSError."""
    return _of(journal.read(path), path.stem)


def of_bytes(data: bytes, path: Path) -> Followed:
    """By those of these bytes. Raises DamagedError."""
    return _of(journal.parse(data, str(path)), path.stem)


def _of(reading: Reading, queue: str) -> Followed:
    return Followed(reading, state.replay(reading.events), cells(queue, reading.events))


def cells(
    queue: str, events: Iterable[Event], before: Iterable[RosterCell] = ()
) -> tuple[RosterCell, ...]:
    """Those before, and those of these events."""
    told = {cell.name: cell for cell in before}
    for event in events:
        if event.type.startswith("cell.") and (cell := event.cell) is not None:
            if cell not in told:
                told[cell] = RosterCell(cell, queue)
            if begun.tells(event):
                told[cell] = _as_started(told[cell], event)
    return tuple(told.values())


def _as_started(cell: RosterCell, event: Event) -> RosterCell:
    data = event.data
    about = {"task": data.get("task", ""), "cfg": data.get("cfg", ""), "epochs": data.get("epochs")}
    if not about["cfg"]:
        return replace(cell, **about)
    line = begun.line(event)
    return replace(cell, **about, own=line.own, overrides=line.overrides)
