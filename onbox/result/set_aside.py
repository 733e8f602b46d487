"""What an attempt left that may not be taken for a start: kept, under another name."""

from __future__ import annotations

from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from onbox.machine.place import Place

# From where, and to where.
Moves = tuple[tuple[Path, Path], ...]


def moves_of(place: Place, cell: str) -> Moves:
    """Where what lies there of its attempts goes."""
    stamp = timestamp.utc_now().replace(":", "")
    return (
        (place.scratch.out(cell), place.scratch.earlier / f"{cell}-{stamp}"),
        (place.durable.resume(cell), place.durable.replaced / f"{cell}-resume-{stamp}"),
    )


def told(moves: Moves) -> str:
    """Behind the reason of a cell's end: nothing is lost."""
    where = " and ".join(str(target) for source, target in moves if source.is_dir())
    return f". What it left is kept in {where}, and no attempt goes on from there" if where else ""


def move(moves: Moves) -> None:
    """The next attempt begins anew, and not at a checkpoint that nobody knows the code of."""
    for source, target in moves:
        if source.is_dir():
            atomic.make_folder(target.parent)
            source.rename(target)
            atomic.sync_folder(target.parent)
            atomic.sync_folder(source.parent)


def what_it_left(place: Place, cell: str) -> None:
    move(moves_of(place, cell))
