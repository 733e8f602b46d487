"""`invoke watch`: the same as status, live. On a terminal until the person leaves, elsewhere until
no agent is left.

A queue that has ended may leave webhooks undelivered (the network was down, the agent was stopped):
watch has its box send them, with the secrets that lie there. Where no durable tier outlives the
boxes, each result is pulled as soon as it is published, and the live checkpoints are brought here.
"""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

from rich.console import Console

from boxcar.laptop.common import show
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.common.text_layout import plain
from boxcar.laptop.news import from_here
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.results import results_folder
from boxcar.laptop.results.bring_checkpoint import Bringing
from boxcar.laptop.results.results_folder import is_over
from boxcar.laptop.run import moves, undelivered
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.news import changes, news, standings
from boxcar.laptop.run.roster import RosterCell
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.laptop.verbs import spending
from boxcar.laptop.verbs.cell_on_board import CellOnBoard
from boxcar.laptop.verbs.even_out import look_and_even_out
from boxcar.laptop.verbs.next_step import next_step
from boxcar.laptop.verbs.pull_cells import pull_cells
from boxcar.laptop.verbs.pull_journals import pull_journals
from boxcar.laptop.verbs.status import (
    document,
    draw_once,
    exit_code,
    is_board,
    present,
    rows_of_run,
)
from boxcar.laptop.view.board import screen
from boxcar.laptop.view.board.pages import OpenedCell
from boxcar.laptop.view.board.screen import Terminal
from boxcar.laptop.view.gpu_history import NOTHING_SEEN, history_after_look
from boxcar.laptop.view.run_rows import RunRows
from boxcar.shared import paths
from boxcar.shared.errors import BoxcarError, Command, Message, message_of, words_of
from boxcar.shared.files import delivered
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.process import exit_codes
from boxcar.shared.sentence import Sentence, _
from boxcar.shared.wire import news_asks

# `watch` on a terminal: who looks, who reads the log of an opened cell, and who draws, at once.
#
# Looks come in a thread of their own, because a box may take its time and a key may not wait for
# it. What verbs say meanwhile is kept off the screen, shown among what needs a person, and said
# again when the screen is gone.


LOG_EVERY_S = 2.0
_FORGOTTEN_S = 5.0  # a cell that nobody has drawn for so long is open no more
_NOTES_KEPT = 20
# A box that does not answer must not keep a person who leaves.
_FAREWELL_S = 2.0
# Between two looks at a run that no agent works at: somebody may launch it again.
REST_S = 120.0

# Given a test for the end, the looks one after the other.
Looks = Callable[[Callable[[float], bool]], Iterable[RunView]]


class _Said(io.TextIOBase):
    """What was said to stdout and stderr meanwhile, each line once."""

    def __init__(self) -> None:
        self._rest, self.lines, self._encoding = "", dict[str, None](), sys.stdout.encoding
        self._lock, self._is_stopped = threading.Lock(), False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Of the terminal, which is asked what it can show."""
        return self._encoding

    def stop(self) -> None:
        """Take nothing more."""
        self._is_stopped = True

    def write(self, text: str) -> int:
        with self._lock:
            if self._is_stopped:
                return len(text)
            *whole, self._rest = f"{self._rest}{text}".split("\n")
            for line in filter(str.strip, whole):
                self.lines[line] = self.lines.pop(line, None)
            while len(self.lines) > _NOTES_KEPT:
                del self.lines[next(iter(self.lines))]
        return len(text)


@contextmanager
def _off_the_screen(said: _Said) -> Iterator[None]:
    try:
        with redirect_stdout(said), redirect_stderr(said):
            yield
    finally:
        for line in said.lines:
            print(line, file=sys.stderr)


class _Feed:
    """See screen.Feed."""

    def __init__(self, site: Site, looks: Looks, wake: Callable[[], None], said: _Said) -> None:
        self._site, self._looks, self._wake, self._said = site, looks, wake, said
        self._latest: tuple[RunRows, float] | None = None
        self._end, self._ended = threading.Event(), threading.Event()
        self._known = OpenedCell("", "unknown")
        self._wanted: tuple[str, int | None, float] = "", None, 0.0
        self._asked, self._is_cut = threading.Event(), False
        self.view: RunView | None = None
        self.error: Exception | None = None
        for work in (self._look, self._read_cells):
            threading.Thread(target=work, daemon=True).start()

    def latest(self) -> tuple[RunRows, float] | None:
        return self._latest

    @property
    def looked_s(self) -> float:
        return time.monotonic() - self._latest[1] if self._latest else 0.0

    def is_over(self) -> bool:
        return self._ended.is_set()

    def opened(self, cell: str, top: int | None) -> OpenedCell:
        known = self._known if self._known.cell == cell else OpenedCell(cell, "unknown")
        if cell != self._wanted[0] or known.wants_more(top):
            self._asked.set()
        self._wanted = cell, top, time.monotonic()
        return known

    def close(self) -> None:
        """End the looks; what is under way on a box is not waited for long."""
        self._end.set()
        self._asked.set()
        if not self._ended.wait(_FAREWELL_S):
            self._is_cut = True
            self._said.stop()
            self._site.close()  # Python waits for each thread, and a thread for its box
            self._ended.wait(_FAREWELL_S)

    def _look(self) -> None:
        history = NOTHING_SEEN
        try:
            for view in self._looks(self._end.wait):
                if self._is_cut:
                    return  # no box is silent because we hung up
                history = history_after_look(history, view)
                notes, at_work = (
                    tuple(self._said.lines),
                    _("agents are running; nothing to do. q leaves watch, the run continues"),
                )
                step = next_step(view, self._site)
                rows = rows_of_run(self._site, view, step, history, at_work=at_work, notes=notes)
                self.view = view
                self._latest = rows, time.monotonic()
                self._wake()
        except Exception as error:  # raised again by who waits for the looks
            self.error = error
        finally:
            self._ended.set()
            self._wake()

    def _read_cells(self) -> None:
        found: CellOnBoard | None = None
        while not self._end.is_set():
            self._asked.wait(LOG_EVERY_S)
            self._asked.clear()
            (cell, top, asked_at), view = self._wanted, self.view
            if view is None or time.monotonic() - asked_at > _FORGOTTEN_S or self._end.is_set():
                continue
            if found is None or found.known.cell != cell:
                found = CellOnBoard(self._site, cell)
            try:
                found.see(view)
                self._tell(found.known)
                found.read(view, top)
            except (BoxcarError, OSError) as error:
                found.fail(error)
            self._tell(found.known)

    def _tell(self, known: OpenedCell) -> None:
        self._known = known
        self._wake()


# What was published since, pulled while somebody watches.


def pull_new(site: Site, view: RunView) -> None:
    """Pull what was published since, silently where there is nothing: `watch` calls it.

    Where no durable tier outlives the box, results are safe only here.
    """
    cells = [cell for cell in view.roster.cells if _is_new(site, cell)]
    if not cells:
        return
    with results_folder.hold(site) as held:
        # Shown by nobody: the board of watch is on the screen already.
        for outcome in pull_cells(site, view, cells, held, Progress("")):
            about = {"name": outcome.name, "word": Sentence(outcome.word)}
            if outcome.why:
                show.say(_("{name}: {word}: {why}", **about, why=outcome.why))
            else:
                show.say(_("{name}: {word}", **about))
        pull_journals(site)


def _is_new(site: Site, cell: RosterCell) -> bool:
    try:
        there = site.tier.receipt(cell.name).read_bytes()
        return (site.results.cell(cell.name) / paths.RECEIPT).read_bytes() != there
    except OSError:
        # Verified cells only: the box may still publish a better result of an unverified one.
        # A Path raises for one that may not be looked at.
        return os.path.exists(site.tier.receipt(cell.name))  # noqa: PTH110


DELIVER_TIMEOUT_S = 90.0  # the verb itself stops trying after 60
ENDED = ("done", "incomplete", "stopped", "drained")


def watch(
    project: Project,
    *,
    interval_s: float | None = None,
    is_once: bool = False,
    as_json: bool = False,
) -> int:
    """Show the run; the exit code is that of status, or 130 for Ctrl-C.

    `interval_s` lies between two looks. By default it is two seconds on this machine; over ssh a
    box tells as soon as it has news, and there is a look every half a minute.
    On a terminal the board fills the screen until the person leaves, and the last of it stays as
    lines. Elsewhere each change is a line until no agent is left, and the tables come at the end.
    With `as_json` the changes go to stderr, and a document comes with each, in one line; the last
    one is final.
    With `is_once` there is one look, and output only where something has changed since the last one
    of this kind, at most once in `interval_s`.
    """
    with open_site(project, show.say) as site:
        if is_once:
            return _once_if_changed(site, interval_s or 0.0, as_json=as_json)
        is_live = not as_json and is_board(sys.stdout, os.environ) and sys.stdin.isatty()
        try:
            if is_live:
                return _on_the_screen(site, interval_s)
            stream = sys.stderr if as_json else sys.stdout
            view = _print_changes(site, interval_s, stream, as_json=as_json)
        except KeyboardInterrupt:
            show.say(Message(_("The run continues. To look again"), Command("watch")))
            return exit_codes.INTERRUPTED
        _present(site, view, as_json=as_json)
        return exit_code(view)


def _on_the_screen(site: Site, interval_s: float | None) -> int:
    """Until the person leaves. Raises what a look raised, KeyboardInterrupt,
    SystemExit.
    """
    console, said = Console(file=sys.stdout, highlight=False), _Said()

    def every(is_to_end: Callable[[float], bool]) -> Iterator[RunView]:
        return looks_without_end(site, interval_s, is_to_end)

    feed = None
    try:
        with _off_the_screen(said), Terminal(sys.stdin.fileno(), console) as terminal:
            feed = _Feed(site, every, terminal.wake, said)
            try:
                screen.show_board(terminal, feed, show.typed(_("asking the boxes")))
            finally:
                feed.close()
        if feed.error:
            raise feed.error
    finally:
        if feed and feed.view:
            draw_once(site, feed.view, feed.looked_s)
    if feed.view is None or any(may_run(queue) for queue in feed.view.queues):
        show.say(Message(_("The run continues. To look again"), Command("watch")))
    return exit_code(feed.view) if feed.view else exit_codes.INTERRUPTED


def _once_if_changed(site: Site, at_most_every_s: float, *, as_json: bool) -> int:
    site.refresh()
    moves.tell_boxes(site, show.say)
    view = look_and_even_out(site)
    spending.look_at_money(site, view)
    lines = news(site.project, standings(view), view.at, at_most_every_s)
    if lines:
        for line in lines:
            print(plain(show.typed(line)), file=sys.stderr if as_json else sys.stdout)
        _present(site, view, as_json=as_json)
    bring_home(site, view)
    return exit_code(view)


def bring_home(site: Site, view: RunView) -> None:
    """What each look does for the run: news that this machine sends, and results and checkpoints
    that no durable tier keeps. Said, never raised.
    """
    _send_news(site, view, [])
    _bring_new(site, view)
    with closing(Bringing(site, show.say)) as checkpoints:
        _bring_checkpoints(site, view, checkpoints)
        checkpoints.wait()


def _present(site: Site, view: RunView, *, as_json: bool) -> None:
    if as_json:
        show.json_line("watch", document(site, view) | {"final": True})
    else:
        present(site, view, as_json=False)


def deliver(site: Site, queue: QueueView) -> None:
    """Have the box send what its agent could not. Said, bounded, never raised."""
    if queue.session is None or not site.is_planned(queue.box) or is_over(site):
        return
    path = site.tier.delivered(queue.name)
    try:
        waiting = undelivered.count_unsent(queue.events, delivered.read_delivered(path))
        if not waiting:
            return
        credentials = site.plan.box(queue.box).credentials
        question = news_asks.Deliver(queue.name, queue.session.release, credentials)
        left = site.ask(queue.box, question, timeout_s=DELIVER_TIMEOUT_S).left
        site.refresh(is_exact=True)
        sent = delivered.read_delivered(path)
    except (BoxcarError, OSError) as error:
        _say_undelivered(queue, words_of(error))
        return
    if left:
        _say_undelivered(queue, _("{n} {n:event|events} not delivered yet", n=left))
    elif sent.endpoints:  # else nobody had asked for any
        late = waiting - undelivered.count_unsent(queue.events, sent)
        show.say(_("{queue}: {n} late {n:webhook|webhooks} delivered", queue=queue.name, n=late))


def _say_undelivered(queue: QueueView, why: str) -> None:
    waiting = _(
        "{queue}: webhooks could not be delivered: {why}\nThey are kept in the event log. "
        "Try again",
        queue=queue.name,
        why=why,
    )
    show.say(Message(waiting, Command("watch")))


def looks(
    site: Site, interval_s: float | None, pause: Callable[[float], object]
) -> Iterator[RunView]:
    """One look after the other, until no agent is left, or `pause`, given seconds, gives True.
    Doubt counts as an agent. `interval_s` None: as soon as a box has news, and now and then.
    """
    tried: set[tuple[str, int]] = set()
    told: list[str] = []
    with closing(Bringing(site, show.say)) as checkpoints:
        while True:
            site.refresh()
            moves.tell_boxes(site, show.say)
            view = look_and_even_out(site)
            spending.look_at_money(site, view)
            yield view
            for queue in view.queues:
                ending = (queue.name, len(queue.events))
                if queue.condition.word in ENDED and ending not in tried:
                    tried.add(ending)
                    deliver(site, queue)
            told = _send_news(site, view, told)
            _bring_new(site, view)
            _bring_checkpoints(site, view, checkpoints)
            if not any(may_run(queue) for queue in view.queues):
                return
            if _pause_between(site, interval_s, pause) is True:
                return


def _pause_between(
    site: Site, interval_s: float | None, pause: Callable[[float], object]
) -> object:
    if interval_s is None:
        return site.await_news(site.poll_s, site.poll_s, pause)
    return pause(interval_s)


def looks_without_end(
    site: Site, interval_s: float | None, pause: Callable[[float], object]
) -> Iterator[RunView]:
    """Those of `looks`, and when no agent is left one now and then, until `pause` gives True.
    After the first, one that fails is said and costs nothing but itself.
    """
    has_looked = False
    while True:
        rest_s = REST_S
        try:
            for view in looks(site, interval_s, pause):
                has_looked = True
                yield view
        except (BoxcarError, OSError) as error:
            if not has_looked:
                raise
            if pause(0.0) is True:
                return  # who has left hears of no look that was cut off
            show.say(_("not refreshed: {why}", why=message_of(error).text))
            rest_s = site.poll_s if interval_s is None else interval_s
        if pause(rest_s) is True:
            return


def _send_news(site: Site, view: RunView, told: list[str]) -> list[str]:
    """What this machine sends; what is refused is said where it was not at the look before."""
    found = from_here.send_news(site, view, os.environ)
    for text in found:
        if text not in told:
            show.say(text)
    return found


def _bring_checkpoints(site: Site, view: RunView, checkpoints: Bringing) -> None:
    if site.plan.durable_scope == EACH_BOX:
        checkpoints.see(view)


def _bring_new(site: Site, view: RunView) -> None:
    """Pull what no durable tier keeps. Said, never raised: another pull may be at work."""
    if site.plan.durable_scope == EACH_BOX:
        try:
            pull_new(site, view)
        except (BoxcarError, OSError) as error:
            show.say(_("new results could not be pulled: {error}", error=error))


def _print_changes(
    site: Site, interval_s: float | None, stream: TextIO, *, as_json: bool
) -> RunView:
    before = None
    for view in looks(site, interval_s, time.sleep):
        found = changes(before, view)
        for change in found:
            print(plain(show.typed(change)), file=stream, flush=True)
        # The last look is the final document, which is printed once all is delivered.
        if as_json and found and any(may_run(queue) for queue in view.queues):
            show.json_line("watch", document(site, view))
        before = view
    return view
