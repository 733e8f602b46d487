"""`invoke status`: where everything stands, once, and the one thing to do next."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from boxcar.laptop.common import show
from boxcar.laptop.common.language import language_of
from boxcar.laptop.news import from_here
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.results.results_folder import is_over
from boxcar.laptop.run import moves
from boxcar.laptop.run.rentals import prices_of_boxes, rentals_of_boxes, stopped_perhaps
from boxcar.laptop.run.view import DAMAGED, RunView
from boxcar.laptop.teardown import meters, rotation
from boxcar.laptop.teardown.countdowns import near_countdowns
from boxcar.laptop.verbs import spending
from boxcar.laptop.verbs.even_out import look_and_even_out
from boxcar.laptop.verbs.next_step import NextStep, next_step, sentence
from boxcar.laptop.verbs.spending import budgets_of_site
from boxcar.laptop.view.board.layout import layout
from boxcar.laptop.view.gpu_history import NOTHING_SEEN, History, history_after_look
from boxcar.laptop.view.looks import glyphs_of_terminal
from boxcar.laptop.view.needs import TWENTIETH, Quiet, webhooks_off
from boxcar.laptop.view.run_rows import Facts, RunRows
from boxcar.laptop.view.run_tables import document_of_run, notes_of_run, tables_of_run
from boxcar.shared.errors import Command, DamagedError, Message
from boxcar.shared.files import receipt
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.sentence import _

_LEAST_LINES = 23
_IN_TROUBLE = {"held", "agent dead", "trainer dead", "damaged", "unknown", "unreachable"}


def status(project: Project, *, as_json: bool = False) -> int:
    """Show the run. Returns 1 where a cell failed or its result is damaged, a queue is dead,
    damaged or unreadable, or a box was ended whose meter nobody saw end.
    """
    with open_site(project, show.say) as site:
        with show.waiting(_("asking the boxes")):
            site.refresh()
        moves.tell_boxes(site, show.say)
        view = look_and_even_out(site)
        spending.look_at_money(site, view)
        present(site, view, as_json=as_json)
        for message in from_here.send_news(site, view, os.environ):
            show.say(message)
        return exit_code(view) or int(bool(_open_meters(site)))


def exit_code(view: RunView) -> int:
    words = {queue.condition.word for queue in view.queues}
    return 1 if view.of_words(("failed", DAMAGED)) or words & _IN_TROUBLE else 0


def present(site: Site, view: RunView, *, as_json: bool) -> None:
    """The view as tables and notes, or as one JSON document."""
    if as_json:
        show.json_document("status", document(site, view))
    elif is_board(sys.stdout, os.environ) and not show.shows_all():
        draw_once(site, view)
        _say_open_ends(site)
    else:
        step = next_step(view, site)
        rows = rows_of_run(site, view, step)
        for table in tables_of_run(rows):
            gone = ("attempts", "release", "time", "queue")
            names = ("box", "cell")
            show.table(table.title, table.columns, table.rows, names=names, first_to_go=gone)
        show.say_of_each(("", note) for note in notes_of_run(rows))
        _say_open_ends(site)
        for note in rows.facts.quiet.notes:
            show.say(note)
        if rows.cost and rows.cost.so_far:
            show.say(_("cost: {money}", money=rows.money))
        for text, left in rows.facts.quiet.countdowns:
            (show.alarm if left <= TWENTIETH else show.say)(text)
        for text, is_spent in rows.facts.quiet.budgets:
            (show.alarm if is_spent else show.say)(text)
        show.say(sentence(step))


def document(site: Site, view: RunView) -> dict[str, Any]:
    step = next_step(view, site)
    teardown = _teardown(site)
    left, still_open = rotation.unrotated(teardown), meters.open_meters(site.project, teardown)
    return document_of_run(rows_of_run(site, view, step), step, left, still_open)


def is_board(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a board can be drawn there: lines are for pipes, for screen readers, and for whoever
    wants no colours.
    """
    is_plain = environ.get("TERM", "dumb") in ("dumb", "unknown", "") or environ.get("NO_COLOR")
    return stream.isatty() and not is_plain


def draw_once(site: Site, view: RunView, looked_s: float = 0.0) -> None:
    """The board of one look, which was so long ago, in what a terminal shows at once."""
    from rich.console import Console  # late, as in show.py

    from boxcar.laptop.view.board.terminal_lines import paint_lines

    history = history_after_look(NOTHING_SEEN, view)
    rows = rows_of_run(site, view, next_step(view, site), history)
    console = Console(file=sys.stdout, highlight=False)
    height = min(show.MOST_LINES, max(_LEAST_LINES, console.height - 1))
    console.print(paint_lines(layout(rows, console.width, height, looked_s=looked_s)))


def quiet_of_run(site: Site, view: RunView, notes: tuple[str, ...] = ()) -> Quiet:
    """What the run's site says, of money and clocks too. `notes` is what was said since."""
    project = site.project
    off = webhooks_off(project.job, view, os.environ)
    silent = {queue.box for queue in view.queues if queue.condition.word == "unreachable"}
    return Quiet(
        notes=(*notes, *([off] if off else ()), *stopped_perhaps(project, silent)),
        is_billed=project.profile.meter.is_billed,
        is_over=is_over(site),
        budgets=tuple(
            (one.sentence, one.is_spent) for one in budgets_of_site(site, view) if one.warned_at
        ),
        countdowns=tuple(
            (one.sentence, one.left_share)
            for one in near_countdowns(project, site.results, view.at)
        ),
        open_meters=tuple((one.box, one.sentence) for one in _open_meters(site)),
    )


def rows_of_run(
    site: Site,
    view: RunView,
    step: NextStep,
    history: History = NOTHING_SEEN,
    *,
    at_work: str = "",
    notes: tuple[str, ...] = (),
) -> RunRows:
    """`at_work`: what a board that is looked at all the time says in place of "watch". `notes` is
    what was said since.
    """
    project, language = site.project, language_of("", os.environ)
    command, because = _next(step, at_work)
    facts = Facts(
        profile=project.plan.profile,
        next=command,
        because=because,
        see_all=show.typed(Command("status", ("--all",))),
        metrics=tuple(metric.name for metric in project.plan.metrics),
        prices=tuple(prices_of_boxes(project).items()),
        rentals=tuple(rentals_of_boxes(project).items()),
        quiet=quiet_of_run(site, view, notes),
        language=language,
        glyphs=glyphs_of_terminal(sys.stdout.encoding, os.environ),
    )
    return RunRows(view, facts, history)


def _next(step: NextStep, at_work: str) -> tuple[str, str]:
    """The command and why. To say "next: watch" on a board that is one would be of no help."""
    if not at_work or step.command != Command("watch"):
        return show.typed(step.command) if step.command else "", show.typed(step.because)
    if isinstance(step.because, Message) and step.because.command:
        return show.typed(step.because.command), show.typed(step.because.text)
    return "", show.typed(at_work)


def _say_open_ends(site: Site) -> None:
    """What a teardown has left to a person."""
    teardown = _teardown(site)
    for message in rotation.rotation_steps(teardown):
        show.say(message)
    for message in meters.meter_rows(meters.open_meters(site.project, teardown)):
        show.alarm(message)
    spending.say_open_orders()


def _open_meters(site: Site) -> tuple[meters.OpenMeter, ...]:
    return meters.open_meters(site.project, _teardown(site))


def _teardown(site: Site) -> Teardown | None:
    """One that cannot be read is `down`'s to tell."""
    try:
        return receipt.read_teardown(site.results.teardown)
    except (OSError, DamagedError):
        return None
