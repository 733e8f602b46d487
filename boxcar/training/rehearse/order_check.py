"""The data order of two runs of one cell, from what `data_order.note` wrote. Pure but for `read`.

After a resume exactly the rest of the uninterrupted run's batches must follow, each with the same
samples; what was drawn after the last save is drawn again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from boxcar.shared.errors import counted

NOT_MEASURED = (
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
                word = "other samples in" if drawn.place in known else "what never came before:"
                return Order(problem=f"{rank} drew {word} {_spelled(drawn)}", start=start)
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
        lost = (
            f"never drew {counted(begin - end, 'batch', 'batches')}, from {_spelled(whole[end])} on"
        )
        return f"{rank} {lost}", end
    if [drawn.place for drawn in drew] != list(places[begin : begin + len(drew)]):
        return f"{rank} drew batches in another sequence after {_spelled(drew[0])}", end
    end = max(end, begin + len(drew))
    if is_last and begin + len(drew) < len(places):
        left = f"resumed at {_spelled(drew[0])} and ended at {_spelled(drew[-1])}"
        return f"{rank} {left}, the uninterrupted run at {_spelled(whole[-1])}", end
    return "", end


def _spelled(drawn: Drawn) -> str:
    return f"epoch {drawn.epoch}, batch {drawn.batch}"
