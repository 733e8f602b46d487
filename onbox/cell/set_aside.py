"""What an attempt left that may not be taken for a start: kept, under another name."""

from __future__ import annotations

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from onbox.place import Place


def what_it_left(place: Place, cell: str) -> None:
    """The next attempt begins anew, and not at a checkpoint that nobody knows the code of."""
    stamp = timestamp.utc_now().replace(":", "")
    moves = (
        (place.scratch.out(cell), place.scratch.earlier / f"{cell}-{stamp}"),
        (place.durable.resume(cell), place.durable.replaced / f"{cell}-resume-{stamp}"),
    )
    for source, target in moves:
        if source.is_dir():
            atomic.make_folder(target.parent)
            source.rename(target)
            atomic.sync_folder(target.parent)
            atomic.sync_folder(source.parent)
