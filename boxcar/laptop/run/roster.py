"""The roster: every cell that this run was ever asked for, and so has to account for.

It comes from the plan, the queue files on the durable tier and the plans of all releases, never
from the results that happen to be there. A source that cannot be read is a doubt, and with a doubt
nothing is torn down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boxcar.laptop.run.missing import Missing
from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import queue_line, receipt, release
from boxcar.shared.files.plan import Plan
from boxcar.shared.message import Message

_ASK = "Restore it from a copy, or move it away if you are sure that no cell of it matters"


@dataclass(frozen=True)
class RosterCell:
    """One cell. `cfg` and `task` are empty and `epochs` None where only a receipt names it."""

    name: str
    queue: str
    task: str = ""
    cfg: str = ""
    epochs: int | None = None


@dataclass(frozen=True)
class Roster:
    """`doubts` keep the gate shut, `notes` are worth a look, `strays` are folders of no cell."""

    cells: tuple[RosterCell, ...] = ()
    doubts: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    strays: tuple[Path, ...] = ()

    @property
    def sentences(self) -> tuple[Message, ...]:
        """What is doubtful or worth a look, for a person."""
        return (*(doubt.message for doubt in self.doubts), *map(Message, self.notes))


def survey(run: OpenRun) -> Roster:
    """The roster with all that is doubtful about it. Raises nothing for a file that is damaged."""
    sources = [
        Roster(tuple(_planned(run.plan)), doubts=tuple(_unknown_here(run.project.doubts))),
        *_each(run.tier.queues, lambda path: _from_queue(path, run.plan.epochs)),
        *_each(run.tier.releases, _from_release),
    ]
    if not run.tier.root.exists():
        sources.append(_from_receipt(run.results.receipt))
    found = _merged(sources)
    return _merged([found, *_strays(run, found)])


def _merged(sources: Sequence[Roster]) -> Roster:
    """One roster of several; the first that names a cell describes it."""
    cells: dict[str, RosterCell] = {}
    for cell in (cell for source in sources for cell in source.cells):
        cells.setdefault(cell.name, cell)
    # A name becomes a folder; one from a tampered file must not lead out of the results.
    bad = [name for name in cells if not queue_line.CELL_NAME.fullmatch(name)]
    return Roster(
        cells=tuple(cell for name, cell in cells.items() if name not in bad),
        doubts=(
            *(doubt for source in sources for doubt in source.doubts),
            *(Missing(None, f"{name!r} cannot be a cell's name", _ASK) for name in bad),
        ),
        notes=tuple(note for source in sources for note in source.notes),
        strays=tuple(stray for source in sources for stray in source.strays),
    )


def _unknown_here(doubts: Sequence[Message]) -> Iterator[Missing]:
    for doubt in doubts:
        yield Missing(None, doubt.text, "Fix it, or take it out")


def _planned(planned: Plan) -> Iterator[RosterCell]:
    for cell in planned.cells:
        yield RosterCell(cell.name, cell.queue, cell.task, cell.cfg, cell.epochs)


def _from_queue(path: Path, epochs: int | None) -> Roster:
    if path.suffix != ".txt":
        return Roster()
    queue = queue_line.parse(path.read_bytes())
    notes = [f"{path}: line {bad.number} is not a cell: {bad.reason}" for bad in queue.bad]
    if queue.unfinished:
        notes.append(f"{path}: its last line has no line feed yet, and does not count")
    cells = (
        RosterCell(line.name, path.stem, line.task, line.cfg, line.epochs or epochs)
        for line in queue.cells
    )
    return Roster(tuple(cells), notes=tuple(notes))


def _from_release(folder: Path) -> Roster:
    # A push that was broken off leaves a folder without them, and nothing ever ran from it.
    if not (folder / release.FILE).exists() and not (folder / release.PLAN).exists():
        return Roster()
    return Roster(tuple(_planned(release.read_plan(folder))))


def _from_receipt(path: Path) -> Roster:
    """What `verify` saw while the tier was there: the roster of a teardown that goes on."""
    try:
        seen = receipt.read_run(path)
    except FileNotFoundError:
        return Roster()
    except (OSError, DamagedError) as error:
        return Roster(doubts=(_unreadable(path, error),))
    return Roster(tuple(RosterCell(verdict.cell, verdict.queue) for verdict in seen.cells))


def _strays(run: OpenRun, found: Roster) -> Iterator[Roster]:
    """Folders that no cell of the roster owns. One that was published is somebody's result."""
    known = {cell.name for cell in found.cells}

    def on_tier(folder: Path) -> Roster:
        stray = here(folder)
        if folder.name in known or not run.tier.manifest(folder.name).exists():
            return stray
        what = f"{folder} is published, but is in no queue and no plan of this run"
        return replace(stray, doubts=(Missing(None, what, "Append its line to a queue again"),))

    def here(folder: Path) -> Roster:
        if folder.name in known:
            return Roster()
        note = f"{folder} is in no queue and no plan of this run"
        return Roster(notes=(note,), strays=(folder,))

    yield from _each(run.tier.cells, on_tier)
    yield from _each(run.results.cell("x").parent, here)


def _each(folder: Path, read: Callable[[Path], Roster]) -> Iterator[Roster]:
    """What each entry of `folder` says, or the doubt that it leaves; a missing folder is empty."""
    try:
        entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except FileNotFoundError:
        return
    except OSError as error:
        yield Roster(doubts=(_unreadable(folder, error),))
        return
    for path in entries:
        try:
            yield read(path)
        except (OSError, DamagedError) as error:
            yield Roster(doubts=(_unreadable(path, error),))


def _unreadable(path: Path, error: Exception) -> Missing:
    what = f"{path} cannot be read, so its cells are not known: {error}"
    return Missing(None, what, _ASK)
