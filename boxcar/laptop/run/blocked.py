"""Which cell keeps another from its turn: one that it comes after, and that nobody will verify."""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.laptop.run.view import CellView, RunView
from boxcar.shared import state
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.message import Command
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Blocked:
    """`by`: the cell that has to be seen to first, through however many others; `why` that one."""

    by: str
    why: str

    @property
    def command(self) -> Command:
        return Command("explain", ("--cell", self.by))


def blocked_of_run(view: RunView) -> dict[str, Blocked]:
    """By cell, what keeps it for good; not those that are done or failed themselves."""
    waiting = {cell.name: cell for cell in view.cells if cell.after and _is_to_come(cell)}
    cells = {cell.name: cell for cell in view.cells} if waiting else {}
    behind: dict[str, list[CellView]] = {}
    for cell in waiting.values():
        for name in cell.after:
            behind.setdefault(name, []).append(cell)
    found: dict[str, Blocked] = {}
    next_ones = list(waiting.values())
    while new := {
        cell.name: kept
        for cell in next_ones
        if cell.name not in found and (kept := _kept(cell, cells, found))
    }:
        found |= new
        next_ones = [cell for name in new for cell in behind.get(name, ())]
    return found


def _kept(
    cell: CellView, cells: Mapping[str, CellView], found: Mapping[str, Blocked]
) -> Blocked | None:
    for name in cell.after:
        if name in found:
            return found[name]
        if why := _why_never(cells.get(name)):
            return Blocked(name, why)
    return None


def _is_to_come(cell: CellView) -> bool:
    now = cell.record.state if cell.record else None
    return not cell.is_dropped and not isinstance(now, state.Verified | state.Failed)


def _why_never(cell: CellView | None) -> str:
    """Why a cell that another comes after will not be verified by itself; '' where it may."""
    if cell is None:
        return Sentence("next_step.in_no_queue")
    if cell.is_dropped:
        return Sentence("next_step.is_dropped")
    return Sentence("next_step.has_failed") if cell.word == state.Failed.word else ""
