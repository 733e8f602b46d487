"""{data} of a release: a folder of links to data that all runs share, made once all of it is whole.

Another release has links of its own: data that is changed and sent again never moves under a cell
that trains.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from boxcar.shared.disk import atomic
from boxcar.shared.files import data_proof
from boxcar.shared.sentence import _
from onbox.agent.outcome import StopQueue
from onbox.machine.place import Place

_MOST_TOLD = 3


def link_data(place: Place) -> None:
    """Raises StopQueue for data that is not whole on this box, or cannot be linked to."""
    try:
        _link_data(place)
    except OSError as error:
        raise StopQueue(_("DATA: {error}", error=error)) from error


def _link_data(place: Place) -> None:
    folder = place.scratch.data_of(place.release.name)
    for name, digest in place.plan.data.items():
        stored = place.data_store.folder(digest)
        if problems := data_proof.problems_of_data(stored):
            raise StopQueue(
                _(
                    "DATA: {name} is not whole on {box}: {problems}. To send it again: launch",
                    name=name,
                    box=place.box,
                    problems="; ".join(problems[:_MOST_TOLD]),
                )
            )
        atomic.make_folder(folder)
        _link(folder / name, place.data_store.files(digest))


def _link(link: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        if link.readlink() == target:
            return
    new = atomic.temporary_name(link)
    new.symlink_to(target)
    try:
        new.replace(link)
    except IsADirectoryError:  # a script put something in its place
        os.rename(link, f"{link}.{os.urandom(4).hex()}")  # noqa: PTH104
        new.replace(link)
