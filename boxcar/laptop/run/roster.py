"""The roster: every cell that this run was ever asked for, and so has to account for."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from functools import cached_property
from itertools import filterfalse
from pathlib import Path

from boxcar.laptop.queues import sync
from boxcar.laptop.queues.sync import Diverged
from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.cell import cell_name, spelling
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import queue_line, receipt
from boxcar.shared.message import Command, Message
from boxcar.shared.record import dataclass, replace

# What stands between a run and its end: one row of what `verify` and `down` say.


@dataclass(frozen=True)
class Missing:
    """One thing that is not as it has to be, and what fixes it: a command, or else a sentence.

    `cell` is None for what concerns the whole run.
    """

    cell: str | None
    what: str
    command: Command | str

    @property
    def message(self) -> Message:
        if isinstance(self.command, Command):
            return Message(self.what, self.command)
        return Message(Sentence("good_run.what_then", what=self.what, then=self.command))


WAY_OUT = Command("repair")


class Line(Enum):
    """What became of the line of a cell that was never begun."""

    IS_THERE = "in a queue, or to be pushed there"
    IS_COMMENTED_OUT = "behind a #: the cell is dropped"
    IS_HELD_BACK = "in the local queue file only, whose push is refused"
    IS_GONE = "in no queue, which nobody has said to mean anything"


@dataclass(frozen=True)
class RosterCell:
    """One cell. `task` and `cfg` are empty and `epochs` None where only its name is known; `own`
    and `overrides` are what its line says beyond that.

    `queue` is empty where nobody knows it. `line` says something only of a cell without claim,
    event and result; with one of these the cell counts whatever became of its line. `index` is its
    place in its queue by the files here.
    """

    name: str
    queue: str
    task: str = ""
    cfg: str = ""
    epochs: int | None = None
    own: Own = NOTHING_OWN
    overrides: tuple[str, ...] = ()
    line: Line = Line.IS_THERE
    index: int | None = None

    @property
    def is_dropped(self) -> bool:
        return self.line is Line.IS_COMMENTED_OUT

    @property
    def doubt(self) -> Missing | None:
        """Where its line was deleted, nobody knows whether that was meant; or it cannot come."""
        if self.line is Line.IS_HELD_BACK:
            what = Sentence("gate.line_held_back", queue=self.queue)
            return Missing(self.name, what, Command("push"))
        if self.line is Line.IS_GONE:
            then = Sentence("gate.put_line_back", queue=self.queue)
            return Missing(self.name, Sentence("gate.line_gone"), then)
        return None


@dataclass(frozen=True)
class Roster:
    """`doubts` keep the gate shut, `notes` are worth a look, `strays` are folders of no cell."""

    cells: tuple[RosterCell, ...] = ()
    doubts: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    strays: tuple[Path, ...] = ()

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(map(operator.attrgetter("name"), self.cells))

    @property
    def sentences(self) -> tuple[Message, ...]:
        """What is doubtful or worth a look, for a person."""
        return (*(doubt.message for doubt in self.doubts), *map(Message, self.notes))


@dataclass(frozen=True)
class Asked:
    """What plans, lines and journals say by their bytes alone, without a look at any folder.

    `lineless` are the cells that have neither a line on the durable tier nor an event. `unlike` are
    those that not every plan, and a line as well, asks for as `roster` says.
    """

    roster: Roster
    lineless: tuple[RosterCell, ...] = ()
    unlike: frozenset[str] = frozenset()


def joined(found: Roster, more: Iterable[Roster]) -> Roster:
    """One that was merged, with what more of them say: mostly nothing."""
    said = [one for one in more if one.cells or one.doubts or one.notes or one.strays]
    return merged([found, *said]) if said else found


def merged(rosters: Iterable[Roster]) -> Roster:
    """One roster of several; the first that names a cell describes it."""
    sources = list(rosters)
    cells: dict[str, RosterCell] = {}
    for source in sources:
        for cell in source.cells:
            cells.setdefault(cell.name, cell)
    # A name becomes a folder; one from a tampered file must not lead out of the results.
    bad = [*filterfalse(cell_name.CELL_NAME.fullmatch, cells)]
    for name in bad:
        del cells[name]
    return Roster(
        cells=tuple(cells.values()),
        doubts=(
            *(doubt for source in sources for doubt in source.doubts),
            *(Missing(None, f"{name!r} cannot be a cell's name", WAY_OUT) for name in bad),
        ),
        notes=tuple(note for source in sources for note in source.notes),
        strays=tuple(stray for source in sources for stray in source.strays),
    )


# Which cells were dropped: a plan asked for them, they were never begun, and their line has a `#`.
#
# A line that was deleted says nothing: an old editor buffer that is saved over a queue does the
# same.


# Name, config and task.
_AsLine = tuple[str, str, str]


def judge_dropped(run: OpenRun, found: Roster, lineless: Iterable[RosterCell]) -> Roster:
    """The roster with what became of each line. `lineless` are the cells that have neither a line
    on the durable tier nor an event.
    """
    if not run.tier.root.exists():
        dropped = set(_dropped_in_receipt(run.results.receipt))
        return _with_lines(found, dict.fromkeys(dropped, Line.IS_COMMENTED_OUT))
    open_cells = [cell for cell in lineless if not _is_begun(run, cell)]
    if not open_cells:
        return found
    commented = {_as_line(line) for line in _commented_out(run.tier.queues)}
    local = {queue: _of_local(run, queue) for queue in {cell.queue for cell in open_cells}}
    planned = frozenset(cell.name for cell in run.plan.cells)
    lines = {one.name: _line(one, commented, planned, local[one.queue]) for one in open_cells}
    return _with_lines(found, lines)


def _with_lines(found: Roster, lines: dict[str, Line]) -> Roster:
    cells = (replace(cell, line=lines.get(cell.name, cell.line)) for cell in found.cells)
    return replace(found, cells=tuple(cells))


def _is_begun(run: OpenRun, cell: RosterCell) -> bool:
    tier = run.tier
    return tier.claim(cell.name).exists() or tier.manifest(cell.name).exists()


def _line(
    cell: RosterCell,
    commented: Collection[_AsLine],
    planned: Collection[str],
    local: Line | None,
) -> Line:
    # Its own line, and no remark that begins with its name.
    if (cell.name, spelling.config_path(cell.cfg), cell.task) in commented:
        return Line.IS_COMMENTED_OUT
    if local is None:
        return Line.IS_THERE
    return local if cell.name in planned else Line.IS_GONE


def _as_line(line: CellLine) -> _AsLine:
    return line.name, line.cfg, line.task


def _of_local(run: OpenRun, queue: str) -> Line | None:
    """What the lines of the local file are that the tier lacks; None where that cannot be told.
    What cannot be read is a doubt already.
    """
    try:
        there = sync.read_tier_queue(run.tier.queue(queue))
    except OSError:
        return None
    try:
        local = run.project.queue_files[queue].read_bytes()
    except (OSError, KeyError):
        return Line.IS_THERE
    is_refused = isinstance(sync.reconcile(local, there), Diverged)
    return Line.IS_HELD_BACK if is_refused else Line.IS_THERE


def _commented_out(folder: Path) -> Iterator[CellLine]:
    try:
        files = sorted(folder.glob("*.txt"))
    except OSError:
        return
    for path in files:
        try:
            yield from queue_line.commented_out(queue_line.what_counts(path))
        except OSError:
            continue  # whose doubt stands in the roster


def _dropped_in_receipt(path: Path) -> Iterator[str]:
    """As it was while the tier was there."""
    try:
        seen = receipt.read_run(path)
    except (OSError, DamagedError):
        return
    yield from (verdict.cell for verdict in seen.cells if verdict.is_dropped)
