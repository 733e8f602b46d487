"""Where the roster comes from: each source by itself, with the doubt that it leaves.

What was asked for stands in plans and queues; what was begun also in journals and claims, and what
came to an end in published cells: a line that is edited away takes none of these along.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path

from boxcar.laptop.run.roster import WAY_OUT, Missing, Roster, RosterCell
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.cell import line_spelling, spelling
from boxcar.shared.errors import DamagedError, message_of
from boxcar.shared.files import cell_claim, manifest, queue_line, receipt, release
from boxcar.shared.files.plan import Plan
from boxcar.shared.message import Message
from boxcar.shared.paths import MANIFEST
from boxcar.shared.record import replace

_LINE = "Write its line as it ran, or put a # before that and write it under another name"


def of_local_files(doubts: Sequence[Message]) -> Roster:
    """Lines on the laptop that nobody can read."""
    return Roster(doubts=tuple(Missing(None, d.text, "Fix it, or take it out") for d in doubts))


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


def of_queues(folder: Path) -> Iterator[Roster]:
    """The lines on the durable tier."""
    return each(folder, _of_queue)


def of_releases(folder: Path) -> Iterator[Roster]:
    return each(folder, _of_release)


def of_journal(path: Path, begun: Sequence[RosterCell] | None) -> Roster:
    """The cells that something happened to; None for a journal that cannot be read."""
    if begun is None:
        what = f"{path} cannot be read, so the cells that ran are not known"
        return Roster(doubts=(Missing(None, what, WAY_OUT),))
    return Roster(tuple(begun))


def of_claims(folder: Path, known: Set[str]) -> Iterator[Roster]:
    """Those of cells that nothing else has named: all of them would be a file each to read."""

    def of_claim(path: Path) -> Roster:
        if path.suffix != ".json":
            return Roster()
        claim = cell_claim.read_claim(path)
        return Roster((RosterCell(path.stem, claim.queue),)) if claim else Roster()

    return each(folder, of_claim, known, suffix=".json")


def of_published(folder: Path, known: Set[str], there: Set[str] | None) -> Iterator[Roster]:
    """Those that nothing else has named. `there` is as in `each`."""

    def of_cell(cell: Path) -> Roster:
        if not (cell / MANIFEST).exists():
            return Roster()
        try:
            found = manifest.read_manifest(cell / MANIFEST)
        except DamagedError:
            return Roster((RosterCell(cell.name, ""),))  # whoever pulls it says what is wrong
        return Roster((RosterCell(cell.name, found.queue, found.task, found.cfg, found.epochs),))

    return each(folder, of_cell, known, there=there)


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
        if not (
            is_asked_by(planned[0], planned[0].epochs, cell)  # as nearly all are
            or any(is_asked_by(one, one.epochs, cell) for one in planned)
        ):
            doubts.append(Missing(None, _difference(cell, planned[0]), _LINE))
        elif not is_asked_by(line, line.epochs or cell.epochs, cell):
            doubts.append(Missing(None, _difference(cell, line), _LINE))
    return Roster(doubts=tuple(doubts))


def unlike(found: Roster, plans: Sequence[Roster], lines: Roster) -> frozenset[str]:
    """The cells that not every plan, and a line as well, asks for as it is found."""
    asked, now = _by_name(plans), {line.name: line for line in lines.cells}

    def is_alike(cell: RosterCell) -> bool:
        by, line = asked.get(cell.name), now.get(cell.name)
        if by is None or line is None or not is_asked_by(line, line.epochs or cell.epochs, cell):
            return False
        return by[-1] is cell or all(is_asked_by(one, one.epochs, cell) for one in by)

    return frozenset(cell.name for cell in found.cells if not is_alike(cell))


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
    was, is_now = line_spelling.quoted_line(ran), line_spelling.quoted_line(asked)
    return f"{ran.name} was started as {was}, but {is_now} was asked for"


def is_asked_by(line: RosterCell, epochs: int | None, ran: RosterCell) -> bool:
    """Whether a line asks for what ran; not for its ranks, its turn and its time."""
    return line is ran or (
        line.overrides == ran.overrides
        and line.task == ran.task
        and epochs == ran.epochs
        and line.own.env == ran.own.env
        and spelling.config_path(line.cfg) == spelling.config_path(ran.cfg)
    )


def each(
    folder: Path,
    read: Callable[[Path], Roster],
    known: Set[str] = frozenset(),
    *,
    suffix: str = "",
    there: Set[str] | None = None,
) -> Iterator[Roster]:
    """What each entry of `folder` says, or the doubt that it leaves; a missing folder is empty.

    One whose name is `known`, but for its `suffix`, is not read: of a large run nearly all are.
    `there` are the names in the folder, where somebody has asked already.
    """
    try:
        if there is None:
            there = {*os.listdir(folder)}  # noqa: PTH208  (a run has a hundred thousand)
        found = there - known
        if suffix:
            found = {name for name in there if name.removesuffix(suffix) not in known}
        names = sorted(name for name in found if not name.startswith("."))
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


def names_in(folder: Path) -> frozenset[str] | None:
    """For `each`; None where it has to ask, and says why nobody can tell."""
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return None


def _of_queue(path: Path) -> Roster:
    if path.suffix != ".txt":
        return Roster()
    queue = queue_line.parse_queue(queue_line.what_counts(path))
    notes = [f"{path}: line {bad.number} is not a cell: {bad.reason}" for bad in queue.bad]
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
    then = Sentence("files.last_line_then", seconds=int(queue_line.LAST_LINE_S))
    return Missing(None, Sentence("files.last_line", path=str(path)), then)


def _unreadable(path: Path, error: Exception) -> Missing:
    what = f"{path} cannot be read, so its cells are not known: {message_of(error).text}"
    return Missing(None, what, WAY_OUT)
