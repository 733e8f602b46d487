"""Whose turn it is: a cell with `after=` comes once the cells that it names are verified. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from boxcar.shared.record import dataclass


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
