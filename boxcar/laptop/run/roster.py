"""The roster: every cell that this run was ever asked for, and so has to account for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import cached_property
from pathlib import Path

from boxcar.laptop.project.queues import sync
from boxcar.laptop.project.queues.sync import Diverged
from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared.cell import cell_line, cell_name
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.errors import Command, DamagedError, Message, message_of
from boxcar.shared.files import attempt, manifest, queue_line, receipt, release
from boxcar.shared.files.plan import Plan
from boxcar.shared.paths import MANIFEST
from boxcar.shared.record import dataclass, replace
from boxcar.shared.sentence import _

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
        return Message(_("{what}. {then}", what=self.what, then=self.command))


WAY_OUT = Command("repair")


class Line(Enum):
    """What became of the line of a cell that was never begun."""

    IS_THERE = _("in a queue, or to be pushed there")
    IS_COMMENTED_OUT = _("commented out (#): the cell is dropped")
    IS_HELD_BACK = _("only in the local queue file, whose push is refused")
    IS_GONE = _("in no queue, for unknown reasons")


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
            what = _(
                "never ran: its line is only in the local file of {queue}. The shared file has "
                "other lines, so push refuses it and says what to do",
                queue=self.queue,
            )
            return Missing(self.name, what, Command("push"))
        if self.line is Line.IS_GONE:
            then = _(
                "Put it back into {queue}, or put it there behind a # to drop the cell",
                queue=self.queue,
            )
            return Missing(self.name, _("never ran, and its line is no longer in any queue"), then)
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
        return frozenset(cell.name for cell in self.cells)

    @property
    def sentences(self) -> tuple[Message, ...]:
        """What is doubtful or worth a look, for a person."""
        return (*(doubt.message for doubt in self.doubts), *map(Message, self.notes))


def survey(run: OpenRun, begun: Mapping[str, Sequence[RosterCell] | None]) -> Roster:
    """The union of all that names a cell of the run, with all that is doubtful about it. `begun`
    are by queue the cells that its journal tells of; None for one that cannot be read.

    It never comes from the results that happen to be here. A source that cannot be read is a doubt,
    and with a doubt nothing is torn down. Raises nothing for a file that is damaged.
    """
    tier = run.tier
    plans = [*_of_plans(run)]
    lines = merged(each(tier.queues, _of_queue))
    ran = merged(of_journal(tier.journal(queue), cells) for queue, cells in begun.items())
    found = merged(
        [
            *plans,
            unplanned(lines, plans, run.plan.epochs),
            ran,
            of_differences(plans, lines, ran),
        ]
    )
    shown = lines.names | ran.names
    lineless = [cell for cell in found.cells if cell.name not in shown]
    found = merged([found, *of_claims(tier.claims, found.names)])
    found = merged([found, *of_published(tier.cells, found.names)])
    found = judge_dropped(run, found, lineless)
    strays = (each(folder, _of_stray, found.names) for folder in (tier.cells, run.results.cells))
    return merged([found, *itertools.chain(*strays)])


def merged(rosters: Iterable[Roster]) -> Roster:
    """One roster of several; the first that names a cell describes it."""
    sources = list(rosters)
    cells: dict[str, RosterCell] = {}
    for source in sources:
        for cell in source.cells:
            cells.setdefault(cell.name, cell)
    # A name becomes a folder; one from a tampered file must not lead out of the results.
    bad = [name for name in cells if not cell_name.CELL_NAME.fullmatch(name)]
    for name in bad:
        del cells[name]
    return Roster(
        cells=tuple(cells.values()),
        doubts=(
            *(doubt for source in sources for doubt in source.doubts),
            *(
                Missing(None, _("{name!r} is not a valid cell name", name=name), WAY_OUT)
                for name in bad
            ),
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
    if (cell.name, cell_name.config_path(cell.cfg), cell.task) in commented:
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


# Where the roster comes from: each source by itself, with the doubt that it leaves.
#
# What was asked for stands in plans and queues; what was begun also in journals and claims, and
# what came to an end in published cells: a line that is edited away takes none of these along.


_LINE = _(
    "Restore its line as it ran, or put a # before that line and add yours under another name"
)


def _of_plans(run: OpenRun) -> Iterator[Roster]:
    yield of_plan(run.plan, is_newest=True)
    # Lines on the laptop that nobody can read.
    mend = _("Fix it, or remove it")
    yield Roster(doubts=tuple(Missing(None, d.text, mend) for d in run.project.doubts))
    yield from each(run.tier.releases, _of_release)
    if not run.tier.root.exists():
        yield of_receipt(run.results.receipt)


def of_plan(planned: Plan, *, is_newest: bool = False) -> Roster:
    """`is_newest`: of the files here, so that it says which place each has in its queue."""
    return Roster(
        tuple(
            RosterCell(
                *(c.name, c.queue, c.task, c.cfg, c.epochs, c.own, c.overrides),
                index=c.index if is_newest else None,
            )
            for c in planned.cells
        )
    )


def of_journal(path: Path, begun: Sequence[RosterCell] | None) -> Roster:
    """The cells that something happened to; None for a journal that cannot be read."""
    if begun is None:
        what = _("{path} cannot be read, so it is unknown which cells ran", path=path)
        return Roster(doubts=(Missing(None, what, WAY_OUT),))
    return Roster(tuple(begun))


def of_claims(folder: Path, known: Set[str]) -> Iterator[Roster]:
    """Those of cells that nothing else has named: all of them would be a file each to read."""

    def of_claim(path: Path) -> Roster:
        if path.suffix != ".json":
            return Roster()
        claim = attempt.read_claim(path)
        return Roster((RosterCell(path.stem, claim.queue),)) if claim else Roster()

    return each(folder, of_claim, {f"{name}.json" for name in known})


def of_published(folder: Path, known: Set[str]) -> Iterator[Roster]:
    """Those that nothing else has named."""

    def of_cell(cell: Path) -> Roster:
        if not (cell / MANIFEST).exists():
            return Roster()
        try:
            found = manifest.read_manifest(cell / MANIFEST)
        except DamagedError:
            return Roster((RosterCell(cell.name, ""),))  # whoever pulls it says what is wrong
        return Roster((RosterCell(cell.name, found.queue, found.task, found.cfg, found.epochs),))

    return each(folder, of_cell, known)


def of_receipt(path: Path) -> Roster:
    """What `verify` saw while the tier was there: the roster of a teardown that goes on."""
    try:
        seen = receipt.read_run(path)
    except FileNotFoundError:
        return Roster()
    except (OSError, DamagedError) as error:
        return Roster(doubts=(_unreadable(path, error),))
    return Roster(tuple(RosterCell(verdict.cell, verdict.queue) for verdict in seen.cells))


def of_differences(plans: Sequence[Roster], lines: Roster, started: Roster) -> Roster:
    """Cells that were started otherwise than every plan says, or than their line says by now.

    A queue line has no check, and a flipped bit in one trains something else; who edited it may
    take the result for what it asks. Epochs count where the line gives any.
    """
    asked, now = _by_name(plans), {line.name: line for line in lines.cells}
    doubts = []
    for cell in (cell for cell in started.cells if cell.cfg):
        planned, line = asked.get(cell.name, [cell]), now.get(cell.name, cell)
        if not any(is_asked_by(one, one.epochs, cell) for one in planned):
            doubts.append(Missing(None, _difference(cell, planned[0]), _LINE))
        elif not is_asked_by(line, line.epochs or cell.epochs, cell):
            doubts.append(Missing(None, _difference(cell, line), _LINE))
    return Roster(doubts=tuple(doubts))


def unplanned(lines: Roster, plans: Sequence[Roster], default: int | None) -> Roster:
    """The lines of cells that no plan describes, with the job's epochs where one gives none."""
    planned = set[str]().union(*(plan.names for plan in plans))
    left = (cell for cell in lines.cells if cell.name not in planned)
    cells = (cell if cell.epochs else replace(cell, epochs=default) for cell in left)
    return replace(lines, cells=tuple(cells))


def _by_name(sources: Sequence[Roster]) -> dict[str, list[RosterCell]]:
    found: dict[str, list[RosterCell]] = {}
    for cell in (cell for source in sources for cell in source.cells if cell.cfg):
        found.setdefault(cell.name, []).append(cell)
    return found


def _difference(ran: RosterCell, asked: RosterCell) -> str:
    was, is_now = cell_line.quoted_line(ran), cell_line.quoted_line(asked)
    return _(
        "{ran} was started as {was}, but its line is now {is_now}",
        ran=ran.name,
        was=was,
        is_now=is_now,
    )


def is_asked_by(line: RosterCell, epochs: int | None, ran: RosterCell) -> bool:
    """Whether a line asks for what ran; not for its ranks, its turn and its time."""
    return (
        line.overrides == ran.overrides
        and line.task == ran.task
        and epochs == ran.epochs
        and line.own.env == ran.own.env
        and cell_name.config_path(line.cfg) == cell_name.config_path(ran.cfg)
    )


def each(
    folder: Path,
    read: Callable[[Path], Roster],
    known: Set[str] = frozenset(),
) -> Iterator[Roster]:
    """What each entry of `folder` says, or the doubt that it leaves; a missing folder is empty.

    One whose name is `known` is not read: of a run nearly all are.
    """
    try:
        names = sorted(
            path.name
            for path in folder.iterdir()
            if path.name not in known and not path.name.startswith(".")
        )
    except FileNotFoundError:
        return
    except OSError as error:
        yield Roster(doubts=(_unreadable(folder, error),))
        return
    for path in (folder / name for name in names):
        try:
            yield read(path)
        except (OSError, DamagedError) as error:
            yield Roster(doubts=(_unreadable(path, error),))


def _of_stray(folder: Path) -> Roster:
    """Of a folder that no cell of the roster owns."""
    return Roster(
        notes=(_("{folder} belongs to no cell of this run", folder=folder),), strays=(folder,)
    )


def _of_queue(path: Path) -> Roster:
    if path.suffix != ".txt":
        return Roster()
    queue = queue_line.parse_queue(queue_line.what_counts(path))
    notes = [
        _(
            "{path}: line {number} is not a cell: {reason}",
            path=path,
            number=bad.number,
            reason=bad.reason,
        )
        for bad in queue.bad
    ]
    name = path.stem
    doubts = (_still_typed(path),) if queue.unfinished else ()
    cells = (
        RosterCell(line.name, name, line.task, line.cfg, line.epochs, line.own, line.overrides)
        for line in queue.cells
    )
    return Roster(tuple(cells), doubts, notes=tuple(notes))


def _of_release(folder: Path) -> Roster:
    # A push that was broken off leaves a folder without them, and nothing ever ran from it.
    if not (folder / release.FILE).exists() and not (folder / release.PLAN).exists():
        return Roster()
    return of_plan(release.read_plan(folder))


def _still_typed(path: Path) -> Missing:
    then = _(
        "Check again: the line counts once the file has not changed for {seconds} s",
        seconds=int(queue_line.LAST_LINE_S),
    )
    return Missing(
        None,
        _(
            "{path}: its last line has no line feed, so somebody may still be typing it",
            path=str(path),
        ),
        then,
    )


def _unreadable(path: Path, error: Exception) -> Missing:
    what = _(
        "{path} cannot be read, so its cells are unknown: {text}",
        path=path,
        text=message_of(error).text,
    )
    return Missing(None, what, WAY_OUT)
