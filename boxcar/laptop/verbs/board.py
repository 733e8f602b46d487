"""`invoke board`: the board as a page of HTML, served on this machine or written to a file."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from boxcar.laptop.common import show, units
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.from_environment import credential_names, known_secrets
from boxcar.laptop.project.project import Project
from boxcar.laptop.run import moves
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.log_source import FileLog
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.verbs import explain
from boxcar.laptop.verbs.logs import find, readable
from boxcar.laptop.verbs.next_step import next_step, sentence
from boxcar.laptop.verbs.status import rows_of_run
from boxcar.laptop.verbs.watch import LOG_EVERY_S, REST_S, looks_without_end
from boxcar.laptop.view.gpu_history import NOTHING_SEEN, History, history_after_look
from boxcar.laptop.view.looks import UNICODE
from boxcar.laptop.view.page import cell_curves, live_page, server
from boxcar.laptop.view.page.cell_curves import Reports, Whole
from boxcar.laptop.view.page.live_page import OpenedCell, Private, Reading
from boxcar.laptop.view.run_rows import Facts, RunRows
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, Command, InputError, Message, message_of
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.triage.log_lines import without_colours
from boxcar.shared.wire import run_asks

# A file is written by somebody's cron, nobody knows how often.
_FILE = Reading(every_s=60.0, old_s=3600.0)
LOG_LINES, _LOG_BYTES = 50, 256 * 1024
# Cells that can be opened in a file: each may cost a question to a box.
_MOST_TOLD = 40


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


class Opener:
    """What somebody reads who opens a cell, of the newest look. One is read at a time: a box is
    asked for the end of its log, and not again before `LOG_EVERY_S`.
    """

    def __init__(self, site: Site) -> None:
        self.rows: RunRows | None = None
        self._site, self._lock = site, threading.Lock()
        self._read: dict[str, tuple[float, str]] = {}

    def opened(self, cell: str) -> str | None:
        with self._lock:
            rows = self.rows
            if rows is None or cell not in {one.name for one in rows.view.cells}:
                return None
            read_s, text = self._read.get(cell, (-LOG_EVERY_S, ""))
            if time.monotonic() - read_s >= LOG_EVERY_S:
                text = _opened(self._site, rows, cell, has_log=True)
                self._read = {cell: (time.monotonic(), text)}
            return text


def _opened(site: Site, rows: RunRows, name: str, *, has_log: bool) -> str:
    found = explain.explain_in(site, rows.view, name, has_quotes=has_log)
    log, note = log_for_others(site, rows.view, find(rows.view, name)) if has_log else (None, "")
    opened = OpenedCell(
        cell=name,
        state=found.state,
        facts=found.facts,
        history=tuple((moment.at, moment.what) for moment in found.history),
        next=show.typed(sentence(found.next)),
        log=log,
        log_note=note,
    )
    return live_page.opened_text(opened, rows.facts, _private(site))


def log_for_others(site: Site, view: RunView, cell: CellView) -> tuple[tuple[str, ...] | None, str]:
    """The last lines of its log where the secrets' values could be left out, and what is to be
    said of them. The box knows the values; this machine does where all of them are set.
    """
    unset = [name for name in credential_names(site.project.job) if not os.environ.get(name)]
    pulled, box = site.pulled_log(cell.name), site.box_with_log(cell)
    data, is_clean = b"", False
    silent = next((queue.silent for queue in view.queues if queue.box == box and queue.silent), "")
    try:
        if pulled.is_file() and not unset and not cell.is_under_way:
            data = FileLog(pulled).end(LOG_LINES)[0]
        elif silent:  # else each cell of it would wait for the box again
            return None, _("{head}: {text}", head=box, text=silent)
        elif box:
            credentials = site.plan.box(box).credentials
            question = run_asks.ReadLog(None, LOG_LINES, _LOG_BYTES, cell.name, None, credentials)
            found = site.ask(box, question)
            data, is_clean = found.data, found.is_clean
    except (BoxcarError, OSError) as error:
        return None, message_of(error).text
    if unset and data and not is_clean:
        hidden = _(
            "not shown: the values of {names} are not known, so they cannot be left out",
            names=", ".join(unset),
        )
        return None, hidden
    text = without_colours(data.decode(errors="surrogateescape"))
    lines = readable([text.encode(errors="surrogateescape")])
    return tuple(lines), "" if data else _("no log yet")


def board(
    project: Project,
    *,
    is_served: bool = False,
    port: int | None = None,
    to: str = "",
    has_logs: bool = False,
    as_json: bool = False,
) -> int:
    """Serve the page until Ctrl-C (the exit code is 130), or write it once. Raises InputError for
    neither, both, a port that is taken and a file that cannot be written.
    """
    if is_served and to:
        raise InputError(_("use either --serve or --to FILE, not both"))
    if port is not None and not is_served:
        raise InputError(_("--port works only with --serve"))
    if has_logs and not to:
        raise InputError(_("--logs works only with --to FILE; --serve always has them"))
    if not is_served and not to:
        raise InputError(_which())
    with open_site(project, show.say) as site:
        if to:
            return _write(site, Path(to), has_logs=has_logs, as_json=as_json)
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


def _write(site: Site, path: Path, *, has_logs: bool, as_json: bool) -> int:
    """0 also where a cell has failed: a cron copies the page behind `&&`."""
    if path.is_dir():
        raise InputError(_("--to: expected a file; {file} is a folder", file=path))
    if not path.parent.is_dir():
        raise InputError(_("--to: no such folder: {folder}", folder=path.parent))
    with show.waiting(_("asking the boxes")):
        site.refresh()
    moves.tell_boxes(site, show.say)
    view = look_at_run(site, timestamp.utc_now())
    watched = NOTHING.after(site, view)
    rows = _rows(site, view, watched)
    told = [row.cell for row in (*rows.failed, *rows.under_way)][:_MOST_TOLD]
    texts = {cell: _opened(site, rows, cell, has_log=has_logs) for cell in told}
    page = live_page.page_of_run(rows, watched.curves, _FILE, _private(site), told=texts)
    atomic.write_whole(path, page.whole)
    if as_json:
        show.json_document(
            "board", {"run": view.run, "at": view.at, "file": str(path), "url": None}
        )
    else:
        show.line(str(path))
    return 0


def _serve(site: Site, port: int, *, as_json: bool) -> int:
    """The first look comes before the address, so that the page has something to say."""
    opener, watched = Opener(site), NOTHING
    views = looks_without_end(site, None, time.sleep)
    with show.waiting(_("asking the boxes")):
        first = next(views)
    with server.serve(port) as page_server:
        page_server.opened = opener.opened
        for number, view in enumerate(chain([first], views), start=1):
            watched = watched.after(site, view)
            opener.rows = rows = _rows(site, view, watched)
            reading, private = _reading(site, view), _private(site)
            page_server.states.append(
                live_page.page_of_run(rows, watched.curves, reading, private, number=number)
            )
            if view is first:
                _tell(first, page_server.url, site.poll_s, as_json=as_json)
    return 0


def _reading(site: Site, view: RunView) -> Reading:
    is_over = not any(map(may_run, view.queues))
    return Reading(site.poll_s, 3 * (REST_S if is_over else site.poll_s) + 30)


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


def _rows(site: Site, view: RunView, watched: Watched) -> RunRows:
    at_work = _("agents are running; nothing to do")
    rows = rows_of_run(site, view, next_step(view, site), watched.history, at_work=at_work)
    return replace(rows, facts=replace(rows.facts, glyphs=UNICODE))


def _private(site: Site) -> Private:
    return Private(known_secrets(site.project.job, os.environ))
