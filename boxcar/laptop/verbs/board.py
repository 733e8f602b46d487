"""`invoke board`: the board as a page of HTML, served on this machine or written to a file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common import show, units
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.from_environment import known_secrets
from boxcar.laptop.project.project import Project
from boxcar.laptop.run import moves
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import RunView
from boxcar.laptop.verbs.next_step import next_step
from boxcar.laptop.verbs.status import rows_of_run
from boxcar.laptop.verbs.watch import looks
from boxcar.laptop.view.gpu_history import NOTHING_SEEN, History, history_after_look
from boxcar.laptop.view.looks import UNICODE
from boxcar.laptop.view.page import cell_curves, live_page, server
from boxcar.laptop.view.page.cell_curves import Reports, Whole
from boxcar.laptop.view.page.live_page import Private, Reading
from boxcar.laptop.view.run_rows import Facts, RunRows
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, Command, InputError, Message, message_of
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# A file is written by somebody's cron, nobody knows how often.
_FILE = Reading(every_s=60.0, old_s=3600.0)
# Between two looks at a run that no agent works at: somebody may launch it again.
_REST_S = 120.0


@dataclass(frozen=True)
class Watched:
    """What the looks so far have shown: what a box reports is replaced every few seconds."""

    history: History
    reports: Reports
    pulled: Mapping[str, Whole]

    def after(self, site: Site, view: RunView) -> Watched:
        done = RunRows(view, Facts("", "", "")).done
        ended = [row.cell for row in done[: cell_curves.MOST_CELLS]]
        pulled = cell_curves.read_pulled_curves(site.results, site.plan.metrics, ended, self.pulled)
        reports = cell_curves.reports_after_look(self.reports, view)
        return Watched(history_after_look(self.history, view), reports, pulled)

    @property
    def curves(self) -> Reports:
        return cell_curves.with_pulled(self.reports, self.pulled)


NOTHING = Watched(NOTHING_SEEN, {}, {})


def board(
    project: Project,
    *,
    is_served: bool = False,
    port: int | None = None,
    to: str = "",
    as_json: bool = False,
) -> int:
    """Serve the page until Ctrl-C (the exit code is 130), or write it once. Raises InputError for
    neither, both, a port that is taken and a file that cannot be written.
    """
    if is_served and to:
        raise InputError(_("use either --serve or --to FILE, not both"))
    if port is not None and not is_served:
        raise InputError(_("--port works only with --serve"))
    if not is_served and not to:
        raise InputError(_which())
    with open_site(project, show.say) as site:
        if to:
            return _write(site, Path(to), as_json=as_json)
        try:
            return _serve(site, port or 0, as_json=as_json)
        except KeyboardInterrupt:
            show.say(
                Message(
                    _("stopped serving; the run continues. To serve again"),
                    Command("board", ("--serve",)),
                )
            )
            return exit_codes.INTERRUPTED


def _which() -> list[Message]:
    return [
        Message(
            _(
                "choose --serve or --to FILE. A page on this machine that refreshes itself, until "
                "Ctrl-C"
            ),
            Command("board", ("--serve",)),
        ),
        Message(
            _("One HTML file, for cron and your own web server"),
            Command("board", ("--to", "board.html")),
        ),
        Message(_("In the terminal"), Command("watch")),
    ]


def _write(site: Site, path: Path, *, as_json: bool) -> int:
    """0 also where a cell has failed: a cron copies the page behind `&&`."""
    if path.is_dir():
        raise InputError(_("--to: expected a file; {file} is a folder", file=path))
    if not path.parent.is_dir():
        raise InputError(_("--to: no such folder: {folder}", folder=path.parent))
    with show.waiting(_("asking the boxes")):
        site.refresh()
    moves.tell_boxes(site, show.say)
    view = look_at_run(site, timestamp.utc_now())
    atomic.write_whole(path, _page(site, view, NOTHING.after(site, view), _FILE))
    if as_json:
        show.json_document(
            "board", {"run": view.run, "at": view.at, "file": str(path), "url": None}
        )
    else:
        show.line(str(path))
    return 0


def _serve(site: Site, port: int, *, as_json: bool) -> int:
    """The first look comes before the address, so that the page has something to say."""
    views = _looks_for_ever(site)
    with show.waiting(_("asking the boxes")):
        first = next(views)
    with server.serve(port) as page_server:
        watched = NOTHING.after(site, first)
        page_server.page = _page(site, first, watched, _reading(site, first))
        _tell(first, page_server.url, site.poll_s, as_json=as_json)
        for view in views:
            watched = watched.after(site, view)
            page_server.page = _page(site, view, watched, _reading(site, view))
    return 0


def _reading(site: Site, view: RunView) -> Reading:
    is_over = not any(map(may_run, view.queues))
    return Reading(site.poll_s, 3 * (_REST_S if is_over else site.poll_s) + 30)


def _looks_for_ever(site: Site) -> Iterator[RunView]:
    """Those of `watch`, and then a look now and then. After the first, one that fails is said and
    costs nothing but itself.
    """
    has_looked = False
    while True:
        try:
            for view in looks(site, lambda: time.sleep(site.poll_s)):
                has_looked = True
                yield view
            time.sleep(_REST_S)
        except (BoxcarError, OSError) as error:
            if not has_looked:
                raise
            show.say(
                _(
                    "page not refreshed: {why}",
                    why=message_of(error).text,
                )
            )
            time.sleep(site.poll_s)


def _tell(view: RunView, url: str, every_s: float, *, as_json: bool) -> None:
    if as_json:
        show.json_document("board", {"run": view.run, "at": view.at, "file": None, "url": url})
        return
    show.line(url)
    show.say(
        _(
            "refreshes every {every} until Ctrl-C; only people with this address can read it",
            every=units.duration(every_s),
        )
    )


def _page(site: Site, view: RunView, watched: Watched, reading: Reading) -> bytes:
    at_work = _("agents are running; nothing to do")
    rows = rows_of_run(site, view, next_step(view, site), watched.history, at_work=at_work)
    rows = replace(rows, facts=replace(rows.facts, glyphs=UNICODE))
    private = Private(known_secrets(site.project.job, os.environ))
    page = live_page.page_of_run(rows, watched.curves, reading, private)
    return page.encode("utf-8", "replace")
