"""Whose turn it is: a cell with `after=` comes once the cells that it names are verified. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from boxcar.shared.record import dataclass


class Standing(enum.Enum):
    """Of a cell that another one comes after."""

    VERIFIED = "verified"
    TO_COME = "to come"
    LOST = "failed, or in no queue that is worked through"


@dataclass(frozen=True)
class Turns:
    """Cells that are passed over now, each with the one that keeps it: for a while, or for good."""

    waiting: Mapping[str, str] = field(default_factory=dict)
    blocked: Mapping[str, str] = field(default_factory=dict)


def turns(after: Mapping[str, Sequence[str]], standings: Mapping[str, Standing]) -> Turns:
    """`after` has the cells that are still to be run and name others; `standings` all of these."""
    blocked: dict[str, str] = {}
    while new := dict(_newly_blocked(after, standings, blocked)):
        blocked |= new
    waiting = {
        cell: due[0]
        for cell, names in after.items()
        if cell not in blocked
        and (due := [name for name in names if standings[name] is Standing.TO_COME])
    }
    circle = _in_a_circle(after, waiting)
    return Turns(
        {cell: name for cell, name in waiting.items() if cell not in circle},
        blocked | {cell: waiting[cell] for cell in circle},
    )


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


def _in_a_circle(after: Mapping[str, Sequence[str]], waiting: Mapping[str, str]) -> set[str]:
    """Those that wait for one another, or for one that does."""
    stuck = set(waiting)
    while free := {cell for cell in stuck if not stuck.intersection(after[cell])}:
        stuck -= free
    return stuck
