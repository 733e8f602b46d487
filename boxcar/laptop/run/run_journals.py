"""A queue's journal, where it has lost nothing of what it is known to have held, and its cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import RosterCell
from boxcar.shared.cell import cell_line
from boxcar.shared.disk import digest
from boxcar.shared.errors import Command, DamagedError
from boxcar.shared.files import heartbeat, journal, journal_repair
from boxcar.shared.files.journal import JournalEnd, Reading
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.record import replace
from boxcar.shared.sentence import _


def cells_begun(queue: str, events: Iterable[Event]) -> tuple[RosterCell, ...]:
    """Each cell once, as it was begun as far as the journal says it."""
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
    if event.type in cell_line.TYPES and cell_line.tells_begun(event):
        told[cell] = _as_started(told[cell], event)


def _as_started(cell: RosterCell, event: Event) -> RosterCell:
    data = event.data
    task, cfg, epochs = data.get("task", ""), data.get("cfg", ""), data.get("epochs")
    if not cfg:
        return replace(cell, task=task, cfg=cfg, epochs=epochs)
    line = cell_line.begun_line(event)
    return RosterCell(cell.name, cell.queue, task, cfg, epochs, line.own, line.overrides)


def read_whole_journal(run: OpenRun, queue: str) -> Reading:
    """The journal on the tier. Raises OSError, and DamagedError, also where its tail is missing:
    the heartbeat or a copy on the laptop goes further.
    """
    # Before the journal: an agent writes an event first, and then how far the journal is.
    seen = heartbeat.journal_end(run.tier.heartbeat(queue))
    path = run.tier.journal(queue)
    reading = journal.read_journal(path)
    copies = () if begins_anew(run, queue) else _ends_of_copies(run, path)
    for end in (*([seen] if seen else []), *copies):
        if problem := journal.lack(reading, end):
            raise DamagedError(_("{head}: {text}", head=path, text=problem), Command("repair"))
    return reading


def begins_anew(run: OpenRun, queue: str) -> bool:
    """Whether no agent was on this tier yet. Where each box has its own, that is a box which was
    rented anew: what is known of the queue is the lost one's, and nothing here is missing.
    """
    is_alone = run.plan.durable_scope == EACH_BOX
    files = (run.tier.journal(queue), run.tier.heartbeat(queue))
    return is_alone and not any(file.exists() for file in files)


def _ends_of_copies(run: OpenRun, path: Path) -> Iterator[JournalEnd]:
    """Where those copies of it on the laptop end that it does not begin with."""
    files = (run.results.journals / path.name, *run.kept_copies(f"journal/{path.name}"))
    copies = [file for file in files if file.exists()]
    if not path.exists():
        return journal_repair.ends_of_copies((copy.read_bytes() for copy in copies), b"")
    other = [copy for copy in copies if not digest.begins_with(path, copy)]
    data = path.read_bytes() if other else b""
    return journal_repair.ends_of_copies((copy.read_bytes() for copy in other), data)
