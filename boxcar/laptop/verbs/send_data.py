"""Have the job's data folders on each box, or once on the tier, before a cell needs them.

Each is sent under an unfinished name, read whole by the box, and then named by its digest. What is
there already is not sent again, whichever run sent it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from pathlib import Path

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.progress import Part, Progress
from boxcar.laptop.hosts import folders
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import data_of_job
from boxcar.laptop.project.project import Project
from boxcar.laptop.release.data_files import ReadData, read_data
from boxcar.laptop.verbs.serve_tier import CHECK_TIMEOUT_S
from boxcar.shared.errors import Command, DamagedError, InputError, NoRoomError, TemporaryError
from boxcar.shared.files import release
from boxcar.shared.sentence import _
from boxcar.shared.wire import data_asks

# All data of a box read again: 100 GB and more from a slow disk.
LONGEST_READ_S = 6 * 3600.0
# A slow network disk reads so much a second.
_SLOW_BYTES_PER_S = 10e6


def read_before(project: Project) -> None:
    """Read the data once, and say how far that is: the release is named by it, too."""
    if not data_of_job.folders_of(project.job):
        return
    listed = data_of_job.list_data(project.root, project.job)
    with show.progress(_("reading the data")) as bar:
        part = bar.part(sum(folder.size_bytes for folder in listed), "")
        read_data(project, part.add)
        part.end()


def send_data(site: Site, boxes: Iterable[str], folder: Path) -> dict[str, Exception]:
    """Send what these boxes lack of the release's data; by box, why one has not all of it now.

    `folder` is the release. Raises InputError where the data changed since it was built.
    """
    wanted = release.read_plan(folder).data
    if not wanted:
        return {}
    data = read_data(site.project)
    if {one.name: one.digest for one in data} != wanted:
        raise InputError(_("the data changed meanwhile. Type the same command again"))
    places = _places(site, list(dict.fromkeys(boxes)))
    stop = threading.Event()
    with show.progress(_("data")) as bar:
        done, errors = side_by_side.each_or_why(
            places,
            lambda box: _send_to(site, box, data, bar, stop),
            on_interrupt=stop.set,
        )
    for box, names in done.items():
        if names:
            where = _("the tier") if site.plan.is_data_on_tier else box
            show.say(_("data sent to {where}: {names}", where=where, names=", ".join(names)))
    return {box: why for at, why in errors.items() for box in places[at]}


def _places(site: Site, boxes: list[str]) -> dict[str, list[str]]:
    """The boxes that each place serves, by the one through which it is reached."""
    if not site.plan.is_data_on_tier:
        return {box: [box] for box in boxes}
    return {site.reach_tiers(boxes)[0]: boxes}


def find_data(
    site: Site, boxes: list[str], *, is_thorough: bool = False
) -> tuple[dict[str, data_asks.DataFound], dict[str, Exception]]:
    """What lies at each place, by the box through which it is reached, and why that is not known
    of others.
    """
    question = data_asks.FindData(site.plan.is_data_on_tier, is_thorough)
    timeout_s = LONGEST_READ_S if is_thorough else CHECK_TIMEOUT_S
    return side_by_side.each_or_why(
        _places(site, boxes), lambda box: site.ask(box, question, timeout_s=timeout_s)
    )


def look_at_urls(
    site: Site, boxes: list[str]
) -> tuple[dict[str, data_asks.UrlsSeen], dict[str, Exception]]:
    """What each place sees of the data that it is to fetch itself."""
    plan = site.plan
    hook = site.project.profile.hook
    env = {**plan.env, **plan.job_env}
    question = data_asks.LookAtUrls(plan.is_data_on_tier, plan.data_urls, hook, env)
    return side_by_side.each_or_why(
        _places(site, boxes), lambda box: site.ask(box, question, timeout_s=CHECK_TIMEOUT_S)
    )


def _send_to(
    site: Site, box: str, data: list[ReadData], bar: Progress, stop: threading.Event
) -> list[str]:
    """The names of what was sent just now."""
    on_tier = site.plan.is_data_on_tier
    question = data_asks.FindData(on_tier, is_thorough=False)
    there = site.ask(box, question, timeout_s=CHECK_TIMEOUT_S).folders
    whole = {one.digest for one in there if not one.problems}
    lacking = [one for one in data if one.digest not in whole]
    once = list({one.digest: one for one in lacking}.values())
    parts = {one.digest: bar.part(one.size_bytes, _name(box, one, once)) for one in once}
    for one in once:
        _send_one(site, box, one, parts[one.digest], stop)
    return [one.name for one in once]


def _name(box: str, one: ReadData, all_of_box: Collection[ReadData]) -> str:
    return f"{box}: {one.name}" if len(all_of_box) > 1 else box


def _send_one(site: Site, box: str, one: ReadData, part: Part, stop: threading.Event) -> None:
    on_tier = site.plan.is_data_on_tier
    sizes_bytes = tuple(file.size_bytes for file in one.files)
    timeout_s = CHECK_TIMEOUT_S + one.size_bytes / _SLOW_BYTES_PER_S
    try:
        prepare = data_asks.PrepareData(on_tier, one.digest, sizes_bytes)
        there = site.ask(box, prepare, timeout_s=timeout_s).folder
    except NoRoomError as error:
        raise NoRoomError(
            _(
                "data {name}: {error}. To free what no run needs",
                name=one.name,
                error=error,
            ),
            Command("data"),
        ) from error

    def on_bytes(done: int) -> None:
        if stop.is_set():  # a thread hears of no Ctrl-C
            raise TemporaryError(_("interrupted"))
        part.at(done)

    install = data_asks.InstallData(on_tier, one.digest, one.files)
    for is_last in (False, True):
        folders.send_folder(one.source, site.folder_on(box, there), on_bytes=on_bytes)
        on_bytes(one.size_bytes)
        part.doing = _("checked by the box")
        try:
            site.ask(box, install, timeout_s=timeout_s)
        except DamagedError:
            if is_last:
                raise
            continue  # what differed was removed there, and is sent again
        break
    part.end()
