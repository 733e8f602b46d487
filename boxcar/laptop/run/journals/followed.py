"""What a journal comes to: the state of its queue, and the cells that something happened to."""

from __future__ import annotations

import functools
import io
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from boxcar.laptop.run.journals.late_events import LateChecks, LateEvents
from boxcar.laptop.run.roster import RosterCell
from boxcar.shared import state
from boxcar.shared.cell import begun
from boxcar.shared.files import journal
from boxcar.shared.files.journal import Reading
from boxcar.shared.files.journal_chain import LINE_FEED, Event
from boxcar.shared.record import dataclass, replace
from boxcar.shared.state import State

# How many of the newest are known by their check: a heartbeat may be that far behind.
CHECKS_KEPT = 100


@dataclass(frozen=True)
class Followed:
    """`begun`: each cell once, as it was begun as far as the journal says it."""

    reading: Reading
    state: State
    begun: Sequence[RosterCell]


# Raises DamagedError, OSError.
Follow = Callable[[Path], Followed]


def of_path(path: Path) -> Followed:
    """By all of its events; a missing file has none. Raises DamagedError, OSError."""
    return of_bytes(bytes_of(path), path)


def walked(path: Path) -> Reading:
    """Each line of it is read, and no event kept; a missing file has none. Raises DamagedError,
    OSError.
    """
    data = bytes_of(path)
    if not data.endswith(LINE_FEED):
        return journal.parse(data, str(path))
    walk, checks = journal.Walk(str(path)), deque[str](maxlen=CHECKS_KEPT)
    for _ in walk.events(io.BytesIO(data)):
        checks.append(walk.chain.check)
    return late_reading(data, str(path), walk.end.seq, tuple(checks))


def bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def of_bytes(data: bytes, path: Path) -> Followed:
    """By those of these bytes. Of whole lines none is kept: a run has half a million. Raises
    DamagedError.
    """
    if not data.endswith(LINE_FEED):
        return _of(journal.parse(data, str(path)), path.stem)
    walk, following, told = journal.Walk(str(path)), state.Replay(), dict[str, RosterCell]()
    queue, checks = path.stem, deque[str](maxlen=CHECKS_KEPT)
    for event in walk.events(io.BytesIO(data)):
        following.take(event)
        _tell(told, queue, event)
        checks.append(walk.chain.check)
    reading = late_reading(data, str(path), walk.end.seq, tuple(checks))
    return Followed(reading, following.state(), tuple(told.values()))


def late_reading(data: bytes, where: str, count: int, checks: tuple[str, ...]) -> Reading:
    """Of bytes that hold so many events, of which the last have these checks."""
    read = functools.cache(lambda: journal.parse(data, where))
    return Reading(
        LateEvents(data, count, lambda: read().events),
        checks=LateChecks(checks, count, lambda: read().checks),
    )


def _of(reading: Reading, queue: str) -> Followed:
    return Followed(reading, state.replay(reading.events), cells(queue, reading.events))


def cells(
    queue: str, events: Iterable[Event], before: Iterable[RosterCell] = ()
) -> tuple[RosterCell, ...]:
    """Those before, and those of these events."""
    told = {cell.name: cell for cell in before}
    for event in events:
        _tell(told, queue, event)
    return tuple(told.values())


def _tell(told: dict[str, RosterCell], queue: str, event: Event) -> None:
    cell = event.data.get("cell")
    if cell is None or not event.type.startswith("cell."):
        return
    if cell not in told:
        told[cell] = RosterCell(cell, queue)
    if event.type in begun.TYPES and begun.tells(event):
        told[cell] = _as_started(told[cell], event)


def _as_started(cell: RosterCell, event: Event) -> RosterCell:
    data = event.data
    task, cfg, epochs = data.get("task", ""), data.get("cfg", ""), data.get("epochs")
    if not cfg:
        return replace(cell, task=task, cfg=cfg, epochs=epochs)
    line = begun.line(event)
    return RosterCell(cell.name, cell.queue, task, cfg, epochs, line.own, line.overrides)
