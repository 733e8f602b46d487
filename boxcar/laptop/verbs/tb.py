"""`invoke tb`: TensorBoard where a run's event files are, until Ctrl-C."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.results.results_folder import is_torn_down
from boxcar.laptop.tensorboard import shown
from boxcar.laptop.tensorboard.shown import Found, Here, Place, Shown
from boxcar.shared.errors import BoxcarError, Command, Message, message_of
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

_LOOK_EVERY_S = 1.0
_LINK_EVERY_S = 15.0


@dataclass(frozen=True)
class Shows:
    """One place: the address of its TensorBoard, or None and why. `where`: the box, '' for here."""

    where: str
    events: int
    url: str | None
    problem: str | None = None


def tb(project: Project) -> int:
    """Until Ctrl-C, which is 130; 1 where nothing can be shown, or all that was shown has ended."""
    with ExitStack() as opened:
        site = opened.enter_context(open_site(project, show.say))
        links = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="boxcar-tb-")))
        with show.waiting(_("looking for event files")):
            found = _all(site, links, opened)
        rows = [row for row, _ in found]
        _tell(site, rows)
        running = {row.where: shown for row, shown in found if shown}
        try:
            return _wait(site, links, running) if running else 1
        except KeyboardInterrupt:
            return exit_codes.INTERRUPTED


def _all(site: Site, links: Path, opened: ExitStack) -> list[tuple[Shows, Shown | None]]:
    """The boxes side by side, and this machine."""
    boxes = [] if is_torn_down(site.results) else [box.name for box in site.plan.boxes]
    tried, errors = side_by_side.each_or_why(boxes, lambda box: _on(site, box, opened))
    found = [each for each in tried.values() if each]
    found += [(_problem(box, error), None) for box, error in errors.items()]
    return [*found, *_here(site, links, opened)]


def _on(site: Site, box: str, opened: ExitStack) -> tuple[Shows, Shown | None] | None:
    place = site.events_on(box)
    return _shown(place, opened) if place else None


def _here(site: Site, links: Path, opened: ExitStack) -> Iterator[tuple[Shows, Shown | None]]:
    """By the first interpreter of this machine that can."""
    shown.link(site.events_here(), links)
    last: tuple[Shows, Shown | None] | None = None
    for python in shown.pythons_here(site.python()):
        try:
            made = _shown(Here(python, links), opened)
        except (BoxcarError, OSError) as error:
            made = _problem("", error), None
        # The person is told to install it for the first one, which is the training's.
        last = made if last is None or made[1] else last
        if made[1] or not made[0].events:
            break
    if last:
        yield last


def _shown(place: Place, opened: ExitStack) -> tuple[Shows, Shown | None]:
    shown, port_here = place.show()
    opened.callback(shown.close)
    found = shown.found()
    if not found.events or not found.has_tensorboard:
        return Shows(place.name, found.events, None, _lack(place, found)), None
    url = f"http://127.0.0.1:{port_here(shown.port())}/"
    return Shows(place.name, found.events, url), shown


def _lack(place: Place, found: Found) -> str:
    where = place.name or _("here")
    if not found.events:
        return _("{where}: no event file (events.out.tfevents.*)", where=where)
    line = shlex.join([found.python, "-m", "pip", "install", "tensorboard"])
    typed = f"ssh {place.name} {shlex.quote(line)}" if place.name else line
    said = _(
        "{where}: {n} event {n:file|files}, but its Python has no TensorBoard. To install it there",
        where=where,
        n=found.events,
    )
    return _("{said}: {line}", said=said, line=typed)


def _problem(where: str, error: Exception) -> Shows:
    said = where or _("here")
    return Shows(where, 0, None, _("{where}: {why}", where=said, why=message_of(error).text))


def _tell(site: Site, rows: Sequence[Shows]) -> None:
    for row in rows:
        if row.url:
            where = row.where or _("here")
            show.line(_("{where}  {url}", where=where, url=row.url))
        elif row.problem:
            show.say(row.problem)
    if any(row.url for row in rows):
        show.say(_("Ctrl-C ends TensorBoard there, too"))
    else:
        show.say(
            _(
                "{run}: nothing to show. Event files below {{out}} show while their cell runs, "
                "and later if they were pulled (collect: [tb/])",
                run=site.plan.run,
            )
        )


def _wait(site: Site, links: Path, running: dict[str, Shown]) -> int:
    """Until all have ended; cells that begin meanwhile are shown too."""
    linked_at = time.monotonic()
    while running:
        for where in [name for name, each in running.items() if each.is_over()]:
            del running[where]
            said = where or _("here")
            show.say(
                Message(
                    _(
                        "{where}: TensorBoard has ended, or the connection was lost. To show it "
                        "again",
                        where=said,
                    ),
                    Command("tb"),
                )
            )
        time.sleep(_LOOK_EVERY_S)
        if time.monotonic() - linked_at > _LINK_EVERY_S:
            shown.link(site.events_here(), links)
            linked_at = time.monotonic()
    return 1
