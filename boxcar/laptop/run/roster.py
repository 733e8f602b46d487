"""The roster: every cell that this run was ever asked for, and so has to account for."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from enum import Enum
from functools import cached_property
from itertools import filterfalse
from pathlib import Path

from boxcar.laptop.run.missing import Missing
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.cell import cell_name
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.message import Command, Message
from boxcar.shared.record import dataclass

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
