"""`invoke board`: the board as a page of HTML, served on this machine or written to a file."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from queue import Queue

from boxcar.laptop.common import home, show, units
from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.from_environment import credential_names, known_secrets
from boxcar.laptop.project.project import Project
from boxcar.laptop.run import moves
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.log_source import FileLog
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.verbs import explain, spending
from boxcar.laptop.verbs.logs import find, readable
from boxcar.laptop.verbs.next_step import next_step, sentence
from boxcar.laptop.verbs.runs import open_known_run
from boxcar.laptop.verbs.status import rows_of_run
from boxcar.laptop.verbs.watch import LOG_EVERY_S, REST_S, looks_without_end
from boxcar.laptop.view.gpu_history import NOTHING_SEEN, History, history_after_look
from boxcar.laptop.view.looks import UNICODE
from boxcar.laptop.view.page import cell_curves, live_page, server
from boxcar.laptop.view.page.cell_curves import Reports, Whole
from boxcar.laptop.view.page.live_page import OpenedCell, Private, Reading, Shown
from boxcar.laptop.view.page.server import PageServer
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
    asked for the end of its log, and not again before `LOG_EVERY_S`. `name`: see Shown.
    """

    def __init__(self, site: Site, name: str = "") -> None:
        self.rows: RunRows | None = None
        self._site, self._name, self._lock = site, name, threading.Lock()
        self._read: dict[str, tuple[float, str]] = {}

    def opened(self, cell: str) -> str | None:
        with self._lock:
            rows = self.rows
            if rows is None or cell not in {one.name for one in rows.view.cells}:
                return None
            read_s, text = self._read.get(cell, (-LOG_EVERY_S, ""))
            if time.monotonic() - read_s >= LOG_EVERY_S:
                text = _opened(self._site, rows, cell, self._name, has_log=True)
                self._read = {cell: (time.monotonic(), text)}
            return text


def _opened(site: Site, rows: RunRows, name: str, run: str = "", *, has_log: bool) -> str:
    """`run`: its name on a page of several."""
    found = explain.explain_in(site, rows.view, name, has_quotes=has_log)
    log, note = log_for_others(site, rows.view, find(rows.view, name)) if has_log else (None, "")
    opened = OpenedCell(
        cell=f"{run}/{name}" if run else name,
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
    beside: Sequence[str] = (),
    as_json: bool = False,
) -> int:
    """Serve the page until Ctrl-C (the exit code is 130), or write it once. `beside`: runs that
    were launched from this machine, and share the page. Raises InputError for neither, both, a port
    that is taken, a file that cannot be written and a run that nobody launched.
    """
    if is_served and to:
        raise InputError(_("use either --serve or --to FILE, not both"))
    if port is not None and not is_served:
        raise InputError(_("--port works only with --serve"))
    if has_logs and not to:
        raise InputError(_("--logs works only with --to FILE; --serve always has them"))
    if not is_served and not to:
        raise InputError(_which())
    projects = [project, *(_launched(name) for name in beside)]
    with ExitStack() as opened:
        sites = [opened.enter_context(open_site(one, show.say)) for one in projects]
        if to:
            return _write(sites, Path(to), has_logs=has_logs, as_json=as_json)
        try:
            return _serve(sites, port or 0, as_json=as_json)
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


def _launched(name: str) -> Project:
    """The newest run of this name that was launched from this machine."""
    known = home.known_runs()
    for one in known:
        if one.run == name:
            return open_known_run(one.run, one.job, one.profile)[0]
    unknown = _(
        "--beside: no run {name!r} was launched from this machine{near}. For all of them",
        name=name,
        near=did_you_mean(name, [one.run for one in known]),
    )
    raise InputError([Message(unknown, Command("runs"))])


def _names(sites: Sequence[Site]) -> list[str]:
    """What the page calls each run; one that is alone needs no name."""
    if len(sites) == 1:
        return [""]
    runs = [site.plan.run for site in sites]
    return [f"{run}-{at}" if runs.count(run) > 1 else run for at, run in enumerate(runs, 1)]


def _write(sites: Sequence[Site], path: Path, *, has_logs: bool, as_json: bool) -> int:
    """0 also where a cell has failed: a cron copies the page behind `&&`."""
    if path.is_dir():
        raise InputError(_("--to: expected a file; {file} is a folder", file=path))
    if not path.parent.is_dir():
        raise InputError(_("--to: no such folder: {folder}", folder=path.parent))
    shown, texts = list[Shown](), dict[str, str]()
    for site, name in zip(sites, _names(sites), strict=True):
        with show.waiting(_("asking the boxes")):
            site.refresh()
        moves.tell_boxes(site, show.say)
        view = look_at_run(site, timestamp.utc_now())
        spending.look_at_money(site, view)
        watched = NOTHING.after(site, view)
        rows = _rows(site, view, watched)
        shown.append(Shown(rows, watched.curves, _private(site), name))
        told = [row.cell for row in (*rows.failed, *rows.under_way)][:_MOST_TOLD]
        texts |= {
            shown[-1].of(cell): _opened(site, rows, cell, name, has_log=has_logs) for cell in told
        }
    page = live_page.page_of_runs(shown, _FILE, told=texts)
    atomic.write_whole(path, page.whole)
    view = shown[0].rows.view
    if as_json:
        show.json_document(
            "board", {"run": view.run, "at": view.at, "file": str(path), "url": None}
        )
    else:
        show.line(str(path))
    return 0


class _Served:
    """One of the runs of a page, as its looks come."""

    def __init__(self, site: Site, name: str) -> None:
        self.opener = Opener(site, name)
        self._site, self._name, self._watched = site, name, NOTHING

    def shown(self, view: RunView) -> Shown:
        self._watched = self._watched.after(self._site, view)
        self.opener.rows = rows = _rows(self._site, view, self._watched)
        return Shown(rows, self._watched.curves, _private(self._site), self._name)


def _serve(sites: Sequence[Site], port: int, *, as_json: bool) -> int:
    """The first look of each run comes before the address: the page has something to say."""
    names, is_over = _names(sites), threading.Event()
    served = [_Served(site, name) for site, name in zip(sites, names, strict=True)]
    openers = {name: one.opener for name, one in zip(names, served, strict=True)}
    looks = [looks_without_end(site, None, is_over.wait) for site in sites]
    with show.waiting(_("asking the boxes")):
        first = [next(views) for views in looks]
    shown = [one.shown(view) for one, view in zip(served, first, strict=True)]

    def opened(cell: str) -> str | None:
        name, _slash, rest = cell.partition("/") if names[0] else ("", "", cell)
        return openers[name].opened(rest) if name in openers else None

    try:
        with server.serve(port) as page_server:
            page_server.opened = opened
            _add_page(page_server, sites, shown)
            _tell(first[0], page_server.url, sites[0].poll_s, as_json=as_json)
            for at, view in _as_they_come(looks):
                shown[at] = served[at].shown(view)
                _add_page(page_server, sites, shown)
    finally:
        is_over.set()
    return 0


def _as_they_come(looks: Sequence[Iterator[RunView]]) -> Iterator[tuple[int, RunView]]:
    """Of several runs each has a thread: a box of one that takes its time holds up no other."""
    if len(looks) == 1:
        yield from ((0, view) for view in looks[0])
        return
    came: Queue[tuple[int, RunView]] = Queue()

    def look(at: int) -> None:
        for view in looks[at]:
            came.put((at, view))

    for at in range(len(looks)):
        threading.Thread(target=look, args=(at,), daemon=True).start()
    while True:
        yield came.get()


def _add_page(page_server: PageServer, sites: Sequence[Site], shown: Sequence[Shown]) -> None:
    number = page_server.states[-1].number + 1
    poll_s = min(site.poll_s for site in sites)
    is_over = not any(may_run(queue) for one in shown for queue in one.rows.view.queues)
    reading = Reading(poll_s, 3 * (REST_S if is_over else max(s.poll_s for s in sites)) + 30)
    page_server.states.append(live_page.page_of_runs(shown, reading, number=number))


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
