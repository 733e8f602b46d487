"""What an attempt left that may not be taken for a start: kept, under another name."""

from __future__ import annotations

from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.sentence import _
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


def told(reason: str, moves: Moves) -> str:
    """The reason of a cell's end, with where what it left is kept."""
    where = ", ".join(str(target) for source, target in moves if source.is_dir())
    if not where:
        return reason
    return _(
        "{reason}. What it left is kept in {where}; no attempt resumes from it",
        reason=reason,
        where=where,
    )


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
