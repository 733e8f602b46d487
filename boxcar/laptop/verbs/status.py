"""`invoke status`: where everything stands, once, and the one thing to do next."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

from boxcar.laptop.common import show, units
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.text_layout import TableView
from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.news import from_here
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project, box_prices
from boxcar.laptop.run import condition, moves
from boxcar.laptop.run.condition import heartbeat_age_s, may_run, next_try
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.news import warnings
from boxcar.laptop.run.view import DAMAGED, Blocked, CellView, QueueView, RunView, blocked_of_run
from boxcar.laptop.teardown import rotation
from boxcar.laptop.triage import advice
from boxcar.laptop.verbs.next_step import NextStep, next_step, sentence
from boxcar.laptop.view.board import terminal_lines
from boxcar.laptop.view.board.history import NOTHING_SEEN, seen
from boxcar.laptop.view.board.layout import layout
from boxcar.laptop.view.board.needs_you import Quiet
from boxcar.laptop.view.board.snapshot import Facts, snapshot, webhooks_off
from boxcar.laptop.view.board.terminal_lines import word
from boxcar.shared import state, timestamp
from boxcar.shared.catalogue.board import condition_sentence, state_sentence
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk import digest
from boxcar.shared.errors import Command, DamagedError, Message
from boxcar.shared.files import codec, control, receipt
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.news.text import said_warning
from boxcar.shared.triage.evidence import course_of

# What `status` and `watch` tell the board besides the view, and on which terminals it is drawn.


def is_board(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a board can be drawn there: lines are for pipes, for screen readers, and for whoever
    wants no colours.
    """
    is_plain = environ.get("TERM", "dumb") in ("dumb", "unknown", "") or environ.get("NO_COLOR")
    return stream.isatty() and not is_plain


def board_facts(
    site: Site,
    view: RunView,
    step: NextStep,
    *,
    at_work: str = "",
    notes: tuple[str, ...] = (),
) -> Facts:
    """From the project and the next step. `at_work`: what a board that is looked at all the time
    says in place of "watch". `notes` is what was said since.
    """
    project, language = site.project, language_of("", os.environ)
    command, because = _next(step, language, at_work)
    return Facts(
        profile=project.plan.profile,
        next=command,
        because=because,
        see_all=f"{show.typed(Command('status'))} | less",
        metrics=tuple(metric.name for metric in project.plan.metrics),
        prices=tuple(box_prices(project).items()),
        quiet=_quiet(site, view, language, notes),
        language=language,
        glyphs=terminal_lines.glyphs_of_terminal(sys.stdout.encoding, os.environ),
    )


def _next(step: NextStep, language: str, at_work: str) -> tuple[str, str]:
    """The command and why. To say "next: watch" on a board that is one would be of no help."""
    if not at_work or step.command != Command("watch"):
        return show.typed(step.command) if step.command else "", show.typed(step.because)
    if isinstance(step.because, Message) and step.because.command:
        return show.typed(step.because.command), show.typed(step.because.text)
    return "", show.typed(at_work)


def _quiet(site: Site, view: RunView, language: str, said: tuple[str, ...]) -> Quiet:
    profile = site.project.profile
    off = webhooks_off(site.project.job, view, os.environ)
    notes = said if off is None else (*said, webhooks_sentence(off, language))
    return Quiet(
        clocks=tuple(clock.said(language) for clock in profile.clocks.dangers),
        clock_command=show.typed(Command("explain", ("--profile", profile.name))),
        notes=notes,
    )


def draw_once(site: Site, view: RunView, looked_s: float = 0.0) -> None:
    """The board of one look, which was so long ago, as long as it needs to be."""
    from rich.console import Console  # late, as in show.py

    from boxcar.laptop.view.board.paint import painted

    known = board_facts(site, view, next_step(view, site))
    found = replace(snapshot(view, seen(NOTHING_SEEN, view), known), looked_s=looked_s)
    console = Console(file=sys.stdout, highlight=False)
    for line in layout(found, console.width):
        console.print(painted(line), end="\n")


def webhooks_sentence(off: str, language: str) -> str:
    """`off` is the variable that is not set, or '' where nobody knows any more."""
    if off:
        return word("webhooks_off", language, name=off)
    return word("webhooks_off_at_launch", language)


METRICS_SHOWN = 3
WHY_SHOWN = 60  # characters
# Which box does not answer, and why, stands among the run's problems already.
UNREACHABLE = "unreachable"
IN_TROUBLE = ("held", "agent dead", "trainer dead", "damaged", "unknown", UNREACHABLE)
AT_EASE = ("not started", "running", "idle", "done")


def status(project: Project, *, as_json: bool = False) -> int:
    """Show the run. Returns 1 where a cell failed or its result is damaged, or a queue is dead,
    damaged or unreadable.
    """
    with open_site(project, show.say) as site:
        with show.waiting(Sentence("how_far.asking")):
            site.refresh()
        moves.tell_boxes(site, show.say)
        view = look_at_run(site, timestamp.utc_now())
        present(site, view, as_json=as_json)
        for sentence in from_here.send_news(site, view, os.environ):
            show.say(sentence)
        return exit_code(view)


def present(site: Site, view: RunView, *, as_json: bool) -> None:
    """The view as tables and notes, or as one JSON document."""
    if as_json:
        show.json_document("status", document(site, view))
        return
    if is_board(sys.stdout, os.environ):
        draw_once(site, view)
        for message in rotation.rotation_steps(_teardown(site)):
            show.say(message)
        return
    for table in tables(view):
        gone = ("attempts", "release", "time", "queue")
        show.table(table.title, table.columns, table.rows, first_to_go=gone)
    for note in notes(view):
        show.say(note)
    for message in rotation.rotation_steps(_teardown(site)):
        show.say(message)
    if (off := webhooks_off(site.project.job, view, os.environ)) is not None:
        show.say(webhooks_sentence(off, language_of("", os.environ)))
    show.say(sentence(next_step(view, site)))


def _teardown(site: Site) -> Teardown | None:
    """One that cannot be read is `down`'s to tell."""
    try:
        return receipt.read_teardown(site.results.teardown)
    except (OSError, DamagedError):
        return None


def exit_code(view: RunView) -> int:
    words = {queue.condition.word for queue in view.queues}
    return 1 if view.of_words(("failed", DAMAGED)) or words & set(IN_TROUBLE) else 0


def tables(view: RunView) -> list[TableView]:
    """The queues, their boxes, the cells, and the last warnings where there are any."""
    left_s = condition.cells_left_s(view)
    found = [_queue_table(view, left_s), *_box_table(view), _cell_table(view, left_s)]
    return [*found, _warning_table(view)] if warnings(view) else found


def notes(view: RunView) -> list[str]:
    """What a table has no room for: the queues that are not at ease, and what could not be read."""
    found = list(view.problems)
    found += [_under(cell.name, cell.sentence) for cell in view.cells if cell.accepted]
    for queue in view.queues:
        now = queue.condition
        is_uneasy = now.word not in (*AT_EASE, UNREACHABLE)
        if is_uneasy or (queue.is_alive and queue.wanted != control.RUN):
            how = _under(condition_sentence(now.word), now.sentence)
            found.append(_under(queue.name, how))
        # A living agent may be in the middle of writing its line.
        if queue.is_torn and not queue.is_alive:
            found.append(
                f"{queue.name}: the last line of its journal was torn by a crash and does not count"
            )
        found += [f"{queue.name}: {problem}" for problem in queue.problems]
        found += queue.undelivered
    return found


def _under(head: str, text: str) -> Sentence:
    return Sentence("good_run.under", head=head, text=text)


def document(site: Site, view: RunView) -> dict[str, Any]:
    """What `--json` prints: run, at, queues, cells, problems, warnings, next and rotate.

    A queue has queue, box, condition, sentence, is_alive (null: not known), cell, step,
    heartbeat_age_s, heartbeat, release, wanted, problems and undelivered (news). A cell has cell,
    queue, box, task, epochs, index, state, attempts, seconds, left_s (null: not known), progress
    (the last numbers), best (until now, of what is not verified), metrics, class (of a failure,
    else null) and detail, which is its state's own data (such as failure and reason); and accepted,
    where `verify` proved what its box could not, and doubt, which marks a result. `next` has
    command (null: nothing to do) and because.
    """
    left_s, steps = condition.cells_left_s(view), _steps(view)
    return {
        "run": view.run,
        "at": view.at,
        "queues": [_queue_document(view, one, steps.get(one.active or "")) for one in view.queues],
        "cells": [_cell_document(cell, left_s[cell.name]) for cell in view.cells],
        "problems": list(view.problems),
        "warnings": [{"at": event.at, **event.data} for _, event in warnings(view)],
        "next": next_step(view, site),
        "rotate": rotation.unrotated(_teardown(site)),
    }


def _queue_table(view: RunView, cells_left_s: Mapping[str, float | None]) -> TableView:
    columns = ("queue", "box", "condition", "cell", "step", "left", "heartbeat", "release")
    left_s, steps = condition.queues_left_s(view, cells_left_s), _steps(view)
    rows = tuple(
        (
            queue.name,
            queue.box,
            condition_sentence(queue.condition.word),
            queue.active,
            steps.get(queue.active or ""),
            _left(left_s[queue.name]),
            None if (age_s := heartbeat_age_s(queue, view.at)) is None else units.duration(age_s),
            digest.short(queue.session.release) if queue.session else None,
        )
        for queue in view.queues
    )
    return TableView(Sentence("looks.queues_of", run=view.run), columns, rows)


def _cell_table(view: RunView, left_s: Mapping[str, float | None]) -> TableView:
    cells, kept = view.cells, blocked_of_run(view)
    words = [cell.word for cell in cells]
    at_work = {queue.name: queue.clock_ahead_s for queue in view.queues if may_run(queue)}
    # A column at a time: a run has a hundred thousand cells, and most columns are soon said.
    columns: dict[str, list[Any]] = {
        "cell": [cell.name for cell in cells],
        "queue": [cell.queue for cell in cells],
        "state": [*map(state_sentence, words)],
        "attempts": [cell.record.attempts if cell.record else None for cell in cells],
        "step": [cell.progress.get("step") for cell in cells],
        "epoch": [cell.progress.get("epoch") for cell in cells],
        "metric": [
            named_numbers(cell.metrics or cell.progress, METRICS_SHOWN, cell.best) for cell in cells
        ],
        "time": [units.duration(cell.seconds) if cell.seconds else None for cell in cells],
        "left": [_left(left_s[cell.name]) for cell in cells],
        "bytes only": [", ".join(cell.bytes_only) for cell in cells],
        "trusted": [", ".join(cell.trusted) for cell in cells],
        "why": [_why(cell, kept.get(cell.name), at_work.get(cell.queue)) for cell in cells],
    }
    return _without_empty(Sentence("looks.cells_of", run=view.run), columns)


def _why(cell: CellView, kept: Blocked | None, clock_ahead_s: float | None) -> str | None:
    """What keeps a cell, in short; `explain` has all of it. `clock_ahead_s`: of its queue, see
    QueueView; None where no agent is at work there.
    """
    now = cell.record.state if cell.record else None
    if isinstance(now, state.Failed | state.Waiting):
        said: list[str] = []
        if clock_ahead_s is not None and (waits := next_try(cell.name, cell.record, clock_ahead_s)):
            said = [waits]
        said += [advice.reason(now.failure, now.reason)] if isinstance(now, state.Failed) else []
        text = " ".join(": ".join([now.failure, *map(show.typed, said)]).split())
        return text if len(text) <= WHY_SHOWN else f"{text[: WHY_SHOWN - 1]}…"
    if cell.marked:
        return Sentence("board.in_doubt", doubt=cell.marked)
    return Sentence("looks.blocked", by=kept.by, why=kept.why) if kept else None


def _box_table(view: RunView) -> list[TableView]:
    """What each box had left at its last heartbeat; none where no agent has written one."""
    columns = ("box", "GPUs", "GPU memory", "memory", "scratch free", "durable tier free")
    rows = [
        (queue.box, *_gpus(queue.heartbeat.gauges), *_rooms(queue.heartbeat.gauges))
        for queue in view.queues
        if queue.heartbeat and queue.is_alive is not False
    ]
    if not rows:
        return []
    said = dict(zip(columns, zip(*rows, strict=True), strict=True))
    return [_without_empty(Sentence("looks.boxes_of", run=view.run), said)]


def _without_empty(title: str, columns: Mapping[str, Sequence[object]]) -> TableView:
    """A column in which nobody has anything to say takes the room of one that does."""
    said = {name: values for name, values in columns.items() if any(values)}
    return TableView(title, (*said,), tuple(zip(*said.values(), strict=True)))


def _gpus(gauges: dict[str, Any]) -> tuple[str | None, str | None]:
    """Use and memory of each GPU, with a gap between two."""
    cards = gauges.get("gpus") or []
    used = "  ".join(f"{card.get('utilization_percent', '?')} %" for card in cards)
    held = "  ".join(
        _of(card.get("memory_used_bytes"), card.get("memory_total_bytes")) for card in cards
    )
    return used or None, held or None


def _rooms(gauges: dict[str, Any]) -> tuple[str, str, str]:
    return (
        _of(gauges.get("memory_used_bytes"), gauges.get("memory_limit_bytes")),
        _free(gauges, "scratch"),
        _free(gauges, "durable"),
    )


def _of(part_bytes: int | None, whole_bytes: int | None) -> str:
    if part_bytes is None:
        return "-"
    if whole_bytes is None:
        return units.size(part_bytes)
    return Sentence("looks.of", part=units.size(part_bytes), whole=units.size(whole_bytes))


def _free(gauges: dict[str, Any], place: str) -> str:
    inodes = gauges.get(f"{place}_free_inodes")
    free = _of(gauges.get(f"{place}_free_bytes"), None)
    if inodes is None:
        return free
    return Sentence("looks.free", size=free, inodes=units.count(inodes))


def _left(left_s: float | None) -> str | None:
    return units.duration(left_s) if left_s else None


def _warning_table(view: RunView) -> TableView:
    rows = tuple(
        (event.at, queue, event.data.get("what"), event.cell, said_warning(event.data))
        for queue, event in warnings(view)
    )
    return TableView("warnings", ("at", "queue", "what", "cell", "text"), rows)


def _steps(view: RunView) -> dict[str, object]:
    active = {queue.active for queue in view.queues}
    return {cell.name: cell.progress.get("step") for cell in view.cells if cell.name in active}


def _queue_document(view: RunView, queue: QueueView, step: object) -> dict[str, Any]:
    found = queue.condition
    return {
        "queue": queue.name,
        "box": queue.box,
        "condition": found.word,
        "sentence": found.sentence,
        "is_alive": queue.is_alive,
        "cell": queue.active,
        "step": step,
        "heartbeat_age_s": heartbeat_age_s(queue, view.at),
        "heartbeat": codec.encode(queue.heartbeat),
        "release": queue.session.release if queue.session else None,
        "wanted": queue.wanted,
        "problems": list(queue.problems),
        "undelivered": list(queue.undelivered),
    }


def _class(cell: CellView) -> str | None:
    """Of what its last attempt failed of; None where it did not fail, or where nobody knows."""
    now = cell.record.state if cell.record else None
    if not isinstance(now, state.Failed | state.Waiting):
        return None
    course = advice.advice_of(now.failure, course_of(now.course)).course
    return course.value if course else None


def _cell_document(cell: CellView, left_s: float | None) -> dict[str, Any]:
    return {
        "cell": cell.name,
        "queue": cell.queue,
        "box": cell.box,
        "task": cell.task,
        "epochs": cell.epochs,
        "index": cell.index,
        "state": cell.word,
        "attempts": cell.record.attempts if cell.record else None,
        "seconds": cell.seconds,
        "left_s": left_s,
        "progress": cell.progress,
        "best": cell.best,
        "metrics": cell.metrics,
        "class": _class(cell),
        "detail": codec.encode(cell.record.state) if cell.record else {},
        **({"accepted": codec.encode(cell.accepted)} if cell.accepted else {}),
        **({"doubt": cell.marked} if cell.marked else {}),
    }
