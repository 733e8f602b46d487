"""`invoke watch`: the same as status, live, until no agent is left.

A queue that has ended may leave webhooks undelivered (the network was down, the agent was stopped):
watch has its box send them, with the secrets that lie there. Where no durable tier outlives the
boxes, each result is pulled as soon as it is published, and the live checkpoints are brought here.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TextIO

from boxcar.laptop.common import show
from boxcar.laptop.common.plain import plain
from boxcar.laptop.news import from_here
from boxcar.laptop.project.project import Project
from boxcar.laptop.results.bring_checkpoint import Bringing
from boxcar.laptop.results.results_folder import is_over
from boxcar.laptop.run import look, moves
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import is_planned, look_at_run
from boxcar.laptop.run.news import changes, news, standings
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.laptop.sites.open_site import open_site
from boxcar.laptop.sites.site import Site
from boxcar.laptop.verbs.live_board import LiveBoard
from boxcar.laptop.verbs.pull_new import pull_new
from boxcar.laptop.verbs.status import document, draw_once, exit_code, is_board, present
from boxcar.shared import exit_codes, timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import delivered
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.message import Command, Message
from boxcar.shared.wire import news_asks

DELIVER_TIMEOUT_S = 90.0  # the verb itself stops trying after 60
ENDED = ("done", "incomplete", "stopped", "drained")


def watch(
    project: Project,
    *,
    interval_s: float | None = None,
    is_once: bool = False,
    as_json: bool = False,
) -> int:
    """Show the run until no agent is left; the exit code is that of status, or 130 for Ctrl-C.

    `interval_s` lies between two looks; by default seconds on this machine, half a minute over ssh.
    On a terminal the board fills the screen, and the last of it stays as lines. Elsewhere each
    change is a line, and the tables come at the end. With `as_json` the changes go to stderr, and a
    document comes with each, in one line; the last one is final.
    With `is_once` there is one look, and output only where something has changed since the last one
    of this kind, at most once in `interval_s`.
    """
    with open_site(project, show.say) as site:
        if is_once:
            return _once_if_changed(site, interval_s or 0.0, as_json=as_json)
        every_s = site.poll_s if interval_s is None else interval_s
        is_live = not as_json and is_board(sys.stdout, os.environ) and sys.stdin.isatty()
        try:
            if is_live:
                return _on_the_screen(site, every_s)
            stream = sys.stderr if as_json else sys.stdout
            view = _print_changes(site, every_s, stream, as_json=as_json)
        except KeyboardInterrupt:
            show.say(Message(Sentence("looks.again"), Command("watch")))
            return exit_codes.INTERRUPTED
        _present(site, view, as_json=as_json)
        return exit_code(view)


def _on_the_screen(site: Site, interval_s: float) -> int:
    def every(is_to_end: Callable[[float], bool]) -> Iterator[RunView]:
        return looks(site, lambda: is_to_end(interval_s))

    board = LiveBoard(site, every)
    try:
        board.show()
    finally:
        if view := board.view:
            draw_once(site, view, board.looked_s)
    if view is None or any(may_run(queue) for queue in view.queues):
        show.say(Message(Sentence("looks.again"), Command("watch")))
    return exit_code(view) if view else exit_codes.INTERRUPTED


def _once_if_changed(site: Site, at_most_every_s: float, *, as_json: bool) -> int:
    site.boxes.refresh()
    moves.tell_boxes(site, show.say)
    view = look_at_run(site, timestamp.utc_now())
    lines = news(site.project, standings(view), view.at, at_most_every_s)
    if lines:
        for line in lines:
            print(plain(show.typed(line)), file=sys.stderr if as_json else sys.stdout)
        _present(site, view, as_json=as_json)
    _send_news(site, view, [])
    _bring_new(site, view)
    with closing(Bringing(site, show.say)) as checkpoints:
        _bring_checkpoints(site, view, checkpoints)
        checkpoints.wait()
    return exit_code(view)


def _present(site: Site, view: RunView, *, as_json: bool) -> None:
    if as_json:
        show.json_line("watch", document(site, view) | {"final": True})
    else:
        present(site, view, as_json=False)


def deliver(site: Site, queue: QueueView) -> None:
    """Have the box send what its agent could not. Said, bounded, never raised."""
    if queue.session is None or not is_planned(site, queue.box) or is_over(site):
        return
    path = site.tier.delivered(queue.name)
    try:
        waiting = look.waiting(queue.events, delivered.read_delivered(path))
        if not waiting:
            return
        credentials = site.plan.box(queue.box).credentials
        question = news_asks.Deliver(queue.name, queue.session.release, credentials)
        left = site.boxes.ask(queue.box, question, timeout_s=DELIVER_TIMEOUT_S).left
        site.boxes.refresh()
        sent = delivered.read_delivered(path)
    except (BoxcarError, OSError) as error:
        _say_undelivered(queue, str(error))
        return
    if left:
        _say_undelivered(queue, Sentence("bring.due", n=left))
    elif sent.endpoints:  # else nobody had asked for any
        late = waiting - look.waiting(queue.events, sent)
        show.say(Sentence("bring.delivered", queue=queue.name, n=late))


def _say_undelivered(queue: QueueView, why: str) -> None:
    waiting = Sentence("bring.undelivered", queue=queue.name, why=why)
    show.say(Message(waiting, Command("watch")))


def looks(site: Site, pause: Callable[[], object]) -> Iterator[RunView]:
    """One look after the other, until no agent is left, or `pause` gives True. Doubt counts as an
    agent.
    """
    tried: set[tuple[str, int]] = set()
    told: list[str] = []
    with closing(Bringing(site, show.say)) as checkpoints:
        while True:
            site.boxes.refresh()
            moves.tell_boxes(site, show.say)
            view = look_at_run(site, timestamp.utc_now())
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
            if pause() is True:
                return


def _send_news(site: Site, view: RunView, told: list[str]) -> list[str]:
    """What this machine sends; what is refused is said where it was not at the look before."""
    found = from_here.send(site, view, os.environ)
    for sentence in found:
        if sentence not in told:
            show.say(sentence)
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
            show.say(Sentence("bring.new_not_pulled", error=error))


def _print_changes(site: Site, interval_s: float, stream: TextIO, *, as_json: bool) -> RunView:
    before = None
    for view in looks(site, lambda: time.sleep(interval_s)):
        found = changes(before, view)
        for change in found:
            print(plain(show.typed(change)), file=stream, flush=True)
        # The last look is the final document, which is printed once all is delivered.
        if as_json and found and any(may_run(queue) for queue in view.queues):
            show.json_line("watch", document(site, view))
        before = view
    return view
