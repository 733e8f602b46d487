"""What two runs of one cell reported and drew: the first step at which they part. Pure.

A run may report a step twice (a step's loss, then the epoch's), so each line of the killed run must
equal one of the uninterrupted run's lines of that step. What was reported before a kill and done
again after it must be equal both times.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from boxcar.shared.sentence import _, mark
from boxcar.training.rehearse.compare import is_of_one_run

# --- The data order of two runs, from what `data_order.note` wrote. Pure but for `read_order`.
# After a resume exactly the rest of the uninterrupted run's batches must follow, each with the same
# samples; what was drawn after the last save is drawn again.


NOT_MEASURED = mark(
    "data order: not measured, because the script draws no batch through RankAwareDataLoader "
    "and calls boxcar.training.data_order.note nowhere"
)


class Drawn(NamedTuple):
    """One batch of one rank."""

    epoch: int
    batch: int
    digest: str

    @property
    def place(self) -> tuple[int, int]:
        return self.epoch, self.batch


Ranks = Mapping[str, Sequence[Drawn]]


@dataclass(frozen=True)
class Order:
    """`problem` is one sentence, '' where the order is the same; `start` as in curve.Parting."""

    batches: int = 0
    problem: str = ""
    start: int = 0


def read_order(folder: Path) -> dict[str, list[Drawn]]:
    """What each rank drew, by the file's name. A line that a kill cut is left out."""
    return {
        path.stem: [drawn for line in path.read_bytes().splitlines() if (drawn := _drawn(line))]
        for path in sorted(folder.glob("rank-*.jsonl"))
    }


def _drawn(line: bytes) -> Drawn | None:
    try:
        value = json.loads(line)
        return Drawn(value["epoch"], value["batch"], value["digest"])
    except (ValueError, KeyError, TypeError):
        return None


def compare_orders(whole: Ranks, starts: Sequence[Ranks]) -> Order | None:
    """None where nothing was noted by the uninterrupted run."""
    batches = sum(len(drawn) for drawn in whole.values())
    if not batches:
        return None
    found = [
        _compare_rank(rank, whole.get(rank, ()), [start.get(rank, ()) for start in starts])
        for rank in sorted(set(whole).union(*starts))
    ]
    # The one that parts first explains the others.
    worst = min((one for one in found if one.problem), key=lambda one: one.start, default=Order())
    return Order(batches, worst.problem, worst.start)


def _compare_rank(rank: str, whole: Sequence[Drawn], starts: Sequence[Sequence[Drawn]]) -> Order:
    known = {drawn.place: drawn.digest for drawn in whole}
    for start, drew in enumerate(starts):
        for drawn in drew:
            if known.get(drawn.place) != drawn.digest:
                words = {"rank": rank, "batch": _spelled(drawn)}
                return Order(
                    problem=_("{rank} drew other samples in {batch}", **words)
                    if drawn.place in known
                    else _("{rank} drew what never came before: {batch}", **words),
                    start=start,
                )
    places = [drawn.place for drawn in whole]
    end = 0
    for start, drew in enumerate(starts):
        problem, end = _follow(rank, whole, places, drew, end, is_last=start == len(starts) - 1)
        if problem:
            return Order(problem=problem, start=start)
    return Order()


def _follow(
    rank: str,
    whole: Sequence[Drawn],
    places: Sequence[tuple[int, int]],
    drew: Sequence[Drawn],
    end: int,
    *,
    is_last: bool,
) -> tuple[str, int]:
    """The problem of one start, and how far the run had come by its end. `end`: that before it."""
    if not drew:
        return "", end
    begin = places.index(drew[0].place)
    if begin > end:
        words = {"rank": rank, "n": begin - end, "batch": _spelled(whole[end])}
        return _("{rank} never drew {n:,} {n:batch|batches}, from {batch} on", **words), end
    if [drawn.place for drawn in drew] != list(places[begin : begin + len(drew)]):
        words = {"rank": rank, "batch": _spelled(drew[0])}
        return _("{rank} drew batches in another sequence after {batch}", **words), end
    end = max(end, begin + len(drew))
    if is_last and begin + len(drew) < len(places):
        words = {"rank": rank, "first": _spelled(drew[0]), "last": _spelled(drew[-1])}
        return _(
            "{rank} resumed at {first} and ended at {last}, the uninterrupted run at {end}",
            end=_spelled(whole[-1]),
            **words,
        ), end
    return "", end


def _spelled(drawn: Drawn) -> str:
    return _("epoch {epoch}, batch {batch}", epoch=drawn.epoch, batch=drawn.batch)


Line = Mapping[str, Any]
# What the progress module adds by itself: when, and what was lost.
_NOT_COMPARED = ("at", "dropped")


@dataclass(frozen=True)
class Parting:
    """Where a value first differs. `start`: 0 before the first kill, 1 after it, and so on."""

    step: int
    start: int
    name: str
    whole: Any
    killed: Any


@dataclass(frozen=True)
class Curve:
    """`lines`: how many were compared. `largest` is the largest relative difference of all.

    `missing` and `surplus`: steps that only one of the runs reported; those that a kill swallowed
    are not missing.
    """

    lines: int = 0
    first: Parting | None = None
    largest: float = 0.0
    missing: tuple[int, ...] = ()
    surplus: tuple[int, ...] = ()


def compare_curves(
    whole: Sequence[Line], starts: Sequence[Sequence[Line]], tolerance: float
) -> Curve:
    """`starts`: the lines of each start of the killed run, in their order."""
    known: dict[int, list[Line]] = {}
    for line in whole:
        known.setdefault(line["step"], []).append(line)
    first, largest, lines = None, 0.0, 0
    for start, reported in enumerate(starts):
        for line in reported:
            if line["step"] not in known:
                continue
            lines += 1
            parting, relative = _closest(known[line["step"]], line, start, tolerance)
            first, largest = first or parting, max(largest, relative)
    surplus = {line["step"] for reported in starts for line in reported} - known.keys()
    return Curve(lines, first, largest, _missing(known, starts), tuple(sorted(surplus)))


def _closest(
    candidates: Sequence[Line], line: Line, start: int, tolerance: float
) -> tuple[Parting | None, float]:
    """None and how far off, where a line of the other run fits; else where the nearest parts."""
    found = [_part(other, line, start, tolerance) for other in candidates]
    # Lines of one step tell each other apart by their names: compare with those that have the same.
    alike = [
        pair for pair, other in zip(found, candidates, strict=True) if _names(other) == _names(line)
    ]
    return min(alike or found, key=lambda pair: (pair[0] is not None, pair[1]))


def _part(whole: Line, killed: Line, start: int, tolerance: float) -> tuple[Parting | None, float]:
    largest = 0.0
    for name in dict.fromkeys([*_names(whole), *_names(killed)]):
        one, other = whole.get(name), killed.get(name)
        relative = _relative(one, other)
        largest = max(largest, relative)
        if relative > tolerance:
            return Parting(killed["step"], start, name, one, other), largest
    return None, largest


def _names(line: Line) -> tuple[str, ...]:
    """Those that are compared, the loss first: it is what people look at."""
    names = [n for n in line if n not in _NOT_COMPARED and not is_of_one_run((n,), line[n])]
    return tuple(sorted(names, key=lambda name: ("loss" not in name, name)))


def _relative(one: Any, other: Any) -> float:
    """0 for what is equal, infinite for what no tolerance can make equal."""
    if one == other and type(one) is type(other):
        return 0.0
    if not (isinstance(one, float) and isinstance(other, float)):
        return math.inf
    return abs(one - other) / max(abs(one), abs(other), 5e-324)


def _missing(known: Mapping[int, object], starts: Sequence[Sequence[Line]]) -> tuple[int, ...]:
    """Steps that no start reported, without those between a kill and what came after it."""
    reported = {line["step"] for lines in starts for line in lines}
    swallowed: set[int] = set()
    for before, after in itertools.pairwise(starts):
        last = max((line["step"] for line in before), default=-1)
        # Who had nothing left to report: the kill came between the last save and its report.
        next_step = min((step for step in known if step > last), default=last)
        end = next_step + 1 if before else last + 1
        begin = min((line["step"] for line in after), default=end)
        swallowed.update(range(last + 1, begin))
    return tuple(sorted(known.keys() - reported - swallowed))
