"""Which cell is next. Pure: decided from the queue, the journal's state and a few sets."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from boxcar.shared.cell import cell_line
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.files.queue_line import Queue
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.state import CellRecord, Failed, State, Succeeded, Synced, Verified

# Two cells that fail the same way within this time point at the box, not at the cells.
FAST_FAILURE_S = 60.0


@dataclass(frozen=True)
class Begin:
    """Where a queue begins: at `cell`, where one is named, else after the first `index` lines."""

    index: int = 0
    cell: str = ""


@dataclass(frozen=True)
class Above:
    """What stood above the first cell to run when the queue was first read: the cells, by name
    because a line may get a `#` later, and the number of the line below them.
    """

    cells: frozenset[str] = frozenset()
    end: int = 0


def above(begin: Begin, queue: Queue, commented: Sequence[CellLine]) -> Above | None:
    """None where `begin` names a cell that has no line.

    `commented` are the lines behind a `#`: a beginning that was dropped keeps its place.
    """
    if begin.cell:
        ends = [line.number for line in (*queue.cells, *commented) if line.name == begin.cell]
    else:
        last = queue.lines[-1].number + 1 if queue.lines else 0
        ends = [*(line.number for line in queue.lines if line.index == begin.index), last]
    if not ends:
        return None
    return Above(frozenset(line.name for line in queue.cells if line.number < ends[0]), ends[0])


def cells_in_turn(
    lines: Iterable[CellLine],
    record_of: Callable[[str], CellRecord],
    *,
    release: str,
    passed_over: Collection[str],
    elsewhere: Mapping[str, str | None] | None = None,
    first: Collection[str] = (),
) -> Iterator[CellLine]:
    """Those of the lines that are to be run now.

    `elsewhere` has the release of each line that runs from another than the agent's, `release`.
    `passed_over` are the cells that have to wait, `first` those that have waited.
    """
    for line in sorted(lines, key=lambda line: line.name not in first) if first else lines:
        if line.name in passed_over:
            continue
        ran_from = (elsewhere or {}).get(line.name) or release
        if is_to_run(record_of(line.name), ran_from):
            yield line


def left_open(queue: Queue, skipped: Above, *, passed_over: Collection[str]) -> list[str]:
    """Which lines an agent that has nothing left to run did not attempt, and why; sentences.

    `passed_over` are the cells of other queues that are not verified there.
    """
    bad = [f"line {one.number} cannot be read" for one in queue.bad if one.number >= skipped.end]
    others = [
        f"{line.name} belongs to another queue, which has not verified it"
        for line in queue.cells
        if line.name in passed_over and line.name not in skipped.cells
    ]
    return [*others, *bad]


def is_to_run(record: CellRecord, release: str) -> bool:
    """Whether a cell still needs an attempt. One that failed is tried again by a later agent."""
    match record.state:
        case Succeeded() | Synced() | Verified():
            return False
        case Failed() as failed:
            is_closed = failed.is_kept or (failed.is_final and failed.release == release)
            return failed.is_from_before and not is_closed
        case _:
            return True


def to_settle(state: State) -> list[tuple[str, int]]:
    """The cells whose result is on scratch or unverified on the tier, with their attempt."""
    return [
        (name, record.state.attempt)
        for name, record in state.cells.items()
        if isinstance(record.state, (Succeeded, Synced))
        or (isinstance(record.state, Failed) and record.state.is_kept)
    ]


def is_same_trouble(earlier: tuple[str, str, float] | None, now: tuple[str, str, float]) -> bool:
    """Whether two failures in a row, (failure, reason, seconds), were fast and alike."""
    if earlier is None:
        return False
    return earlier[:2] == now[:2] and max(earlier[2], now[2]) < FAST_FAILURE_S


def changes(before: Queue, now: Queue, commented: Sequence[CellLine] = ()) -> list[str]:
    """What was edited above the end of the queue: sentences; empty where lines were only added.

    `commented` are the lines of `now` behind a `#`.
    """
    dropped = {line.name for line in before.cells} & {line.name for line in commented}
    dropped -= {line.name for line in now.cells}
    found: list[str] = [
        _("{cell} was commented out", cell=line.name)
        for line in before.cells
        if line.name in dropped
    ]
    left = [line for line in before.lines if getattr(line, "name", None) not in dropped]
    lines = [*now.lines, now.unfinished] if now.unfinished else now.lines
    for old, new in zip(left, lines, strict=False):
        if old != new and _content(old) != _content(new):
            about = {"before": _content(old), "now": _content(new)}
            found.append(_("cell {n} was {before!r} and is now {now!r}", n=old.index, **about))
    if len(lines) < len(left):
        found.append(_("{n} {n:line|lines} removed at the end", n=len(left) - len(lines)))
    return found


def _content(line: object) -> str:
    if isinstance(line, CellLine):
        return cell_line.line_of(line)
    return str(getattr(line, "reason", line))


# --- Whose turn it is: a cell with `after=` comes once the cells that it names are verified. Pure.


class Standing(enum.Enum):
    """Of a cell that another one comes after."""

    VERIFIED = "verified"
    TO_COME = "to come"
    LOST = "failed, or in no queue that is worked through"


@dataclass(frozen=True)
class Turns:
    """Cells that are passed over now, each with the one that keeps it: for a while, or for good.
    `circles`: of those that are blocked as they wait for themselves, how.
    """

    waiting: Mapping[str, str] = field(default_factory=dict)
    blocked: Mapping[str, str] = field(default_factory=dict)
    circles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def turns(
    after: Mapping[str, Sequence[str]],
    standings: Mapping[str, Standing],
    elsewhere: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Turns:
    """`after` has the cells that are still to be run and name others; `standings` all of these.
    `elsewhere`: the same of other queues, as far as they wait.
    """
    blocked: dict[str, str] = {}
    while new := dict(_newly_blocked(after, standings, blocked)):
        blocked |= new
    waiting = {
        cell: due[0]
        for cell, names in after.items()
        if cell not in blocked
        and (due := [name for name in names if standings[name] is Standing.TO_COME])
    }
    both = {**elsewhere, **after}
    stuck = _in_a_circle(both, {*waiting, *elsewhere})
    return Turns(
        {cell: name for cell, name in waiting.items() if cell not in stuck},
        blocked | {cell: waiting[cell] for cell in waiting if cell in stuck},
        {cell: _way_round(cell, both, stuck) for cell in waiting if cell in stuck},
    )


def _way_round(cell: str, after: Mapping[str, Sequence[str]], stuck: set[str]) -> tuple[str, ...]:
    """From the cell to one that was there before: each that is stuck comes after such a one."""
    way = [cell]
    while way.count(way[-1]) < 2:
        way.append(next(name for name in after[way[-1]] if name in stuck))
    return tuple(way)


def _newly_blocked(
    after: Mapping[str, Sequence[str]],
    standings: Mapping[str, Standing],
    blocked: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    for cell, names in after.items():
        if cell not in blocked:
            lost = (n for n in names if standings[n] is Standing.LOST or n in blocked)
            if (name := next(lost, None)) is not None:
                yield cell, name


def _in_a_circle(after: Mapping[str, Sequence[str]], waiting: Collection[str]) -> set[str]:
    """Those that wait for one another, or for one that does."""
    stuck = set(waiting)
    while free := {cell for cell in stuck if not stuck.intersection(after[cell])}:
        stuck -= free
    return stuck
