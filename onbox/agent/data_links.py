"""{data} of a release: a folder of links to data that all runs share, made once all of it is whole.

Another release has links of its own: data that is changed and sent again never moves under a cell
that trains.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, data_proof, fetched_data
from boxcar.shared.files.fetched_data import FetchedData
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.sentence import _
from onbox.agent.outcome import StopQueue
from onbox.machine.place import Place

_MOST_TOLD = 3


def link_data(place: Place) -> None:
    """Raises StopQueue for data that is not whole on this box, or cannot be linked to."""
    try:
        _link_data(place)
    except (OSError, DamagedError) as error:
        raise StopQueue(_("DATA: {error}", error=error)) from error


def _link_data(place: Place) -> None:
    folder = place.scratch.data_of(place.release.name)
    for name, digest in (place.plan.data | _of_urls(place)).items():
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


def _of_urls(place: Place) -> dict[str, str]:
    """Raises StopQueue for what is not what the run's first box got."""
    found = {}
    for one in place.plan.data_urls:
        fetched = fetched_data.find(place.data_store, one)
        if fetched is None:
            text = _(
                "DATA: {name} is gone from {box}. To fetch it again: launch",
                name=one.name,
                box=place.box,
            )
            raise StopQueue(text)
        _refuse_another(place, one, fetched)
        found[one.name] = fetched.digest
    return found


def _refuse_another(place: Place, one: DataUrl, fetched: FetchedData) -> None:
    path = place.durable.fetched(fetched_data.key_of(one))
    atomic.make_folder_on_tier(path.parent, place.durable.root)
    atomic.create_once(path, codec.to_document(fetched))
    first = fetched_data.read(path)
    if first.sha256 != fetched.sha256:
        raise StopQueue(
            _(
                "DATA: {name} on {box} is another file (sha256 {ours}) than the run's first box, "
                "{first}, got (sha256 {theirs}): the source has changed. Write the right sha256 "
                "beside its url, then launch",
                name=one.name,
                box=place.box,
                ours=fetched.sha256[:12],
                first=first.box,
                theirs=first.sha256[:12],
            )
        )


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
