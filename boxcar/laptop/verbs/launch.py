"""Start a run, or go on with it: audit, push, hand over secrets, start each queue's agent, look.

Launching again is harmless: an agent that runs is left alone, cells that are verified stay so, and
cells that failed are tried again. The last step is a look at what really runs, within a minute.
A box that cannot take its queue holds up no other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boxcar.laptop.common import known_runs, show, side_by_side
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.fitness import room_here
from boxcar.laptop.fitness.rules import ALL
from boxcar.laptop.news import from_here
from boxcar.laptop.profiles.page import first_look
from boxcar.laptop.project import (
    cell_smoke,
    from_environment,
    launch_record,
    profile_choice,
)
from boxcar.laptop.project.notify.chats import resolve_channels
from boxcar.laptop.project.project import Project
from boxcar.laptop.release.build import build
from boxcar.laptop.results import lend_checkpoint, lend_results
from boxcar.laptop.run import begin, launch_turn, moves
from boxcar.laptop.run.first_minute import PROBE_S, Started, probe
from boxcar.laptop.run.look import look
from boxcar.laptop.run.view import DROPPED, QueueView, RunView
from boxcar.laptop.sites.open_site import open_site
from boxcar.laptop.sites.site import Site
from boxcar.laptop.tryout import passes
from boxcar.laptop.verbs import audit, control, listen, push
from boxcar.laptop.verbs.move import tell_old_boxes
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import InputError, NoRoomError, message_of
from boxcar.shared.files.control import RUN
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.release import Release
from boxcar.shared.message import Command, Message, some
from boxcar.shared.record import dataclass
from boxcar.shared.wire import asks

_MOST_NAMED = 3
_NO_SMOKE = Command("launch", ("--no-smoke",), note="it is recorded")


@dataclass(frozen=True)
class Order:
    """What every agent of this launch gets: the release, where to begin, and the secrets.

    `start_index` is None where nobody typed one: a queue begins where it did before.
    """

    built: tuple[Release, Path]
    start_index: int | None
    is_smoked: bool
    unknown: passes.Unknown
    credentials: dict[str, Any]


@dataclass(frozen=True)
class Served:
    """What came of one tier: whether the release was new there, and how its queues fared."""

    is_new: bool
    started: list[Started]
    problems: list[Message]


def launch(
    project: Project,
    *,
    start_index: int | None = None,
    boxes: list[str] | None = None,
    is_smoked: bool = True,
    as_json: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Launch the queues (of the named boxes, or all); 1 where one of them does not really run.

    `is_smoked`: on a platform that bills, each cell needs a smoke pass. Raises InputError for what
    the person has to fix; nothing was touched then.
    """
    with open_site(project, show.say) as site:
        queues = _chosen(project, boxes, start_index)
        push.refuse_a_finished_run(project)
        push.refuse_a_tier_out_of_sight(site)
        profile_choice.remember(project.results, project.profile.name, profile_choice.LAUNCHED)
        webhooks, warnings = from_environment.resolve_webhooks(project.job, environ)
        chats, unsent = resolve_channels(project.job, environ)
        secrets = from_environment.resolve_secrets(project.job, environ)
        _refuse_full_disks(site, queues)
        unknown = passes.unknown(project)
        if is_smoked:
            _refuse_unsmoked(project)
            _say_unknown(project, unknown)
        push.check_queues(site)  # as the tier was last seen; nothing is written for a refusal
        with show.waiting(Sentence("how_far.release")):
            built = build(project, show.say)
        for text in first_look(project.profile, project.root):
            show.say(text)
        given = {"env": secrets, "webhooks": webhooks, "channels": chats}
        given |= {"language": project.job.language or language_of("", environ)}
        order = Order(built, start_index, is_smoked, unknown, given)
        with launch_turn.taken(site.results, show.say):
            queues, started, problems = _in_turn(site, queues, order)
        with show.waiting(Sentence("how_far.first_minute")):
            problems += probe(site, started, show.say)
        if as_json:
            row = {"run": site.plan.run, "release": built[0].digest if queues else None}
            queues_started = [one.queue for one in started]
            show.json_document("launch", row | {"started": queues_started, "problems": problems})
        # Beside the last line: what stands before all others is read by nobody.
        unheard: list[str | Message] = [*warnings, *unsent, *listen.unheard(project, webhooks)]
        for warning in unheard:
            show.say(warning)
        return 1 if problems else 0


def _in_turn(
    site: Site, queues: list[str], order: Order
) -> tuple[list[str], list[Started], list[Message]]:
    """The queues whose boxes are fit, which of them were started, and what is wrong."""
    with show.waiting(Sentence("how_far.asking")):
        # An agent that was killed a moment ago is to be started again, and not left alone.
        site.boxes.refresh(is_exact=True)
    tell_old_boxes(site)
    view = look(site, timestamp.utc_now())
    from_here.begin(site, view, os.environ)
    unrunnable = push.say_mixed(site, view, order.built[0], is_mixed=False)
    queues, problems = _audited(site, view, _with_work(site, view, queues, order))
    problems += unrunnable
    if not queues:
        return queues, [], problems
    started, unstarted = _serve_all(site, view, queues, order)
    return queues, started, problems + unstarted


def _chosen(project: Project, boxes: list[str] | None, start_index: int | None) -> list[str]:
    known = project.plan.queues
    chosen = pick(boxes or (), known.values(), what="box", of=the_run(project.plan.run))
    if start_index is not None and start_index < 0:
        raise InputError(Sentence("mistakes.negative_index", number=start_index))
    return [queue for queue, box in known.items() if not chosen or box in chosen]


def _refuse_full_disks(site: Site, queues: list[str]) -> None:
    """Of this machine: of rented boxes the audit says it."""
    boxes = {site.plan.queues[queue] for queue in queues}
    if lacking := room_here.lacking(site.folders_here(boxes)):
        raise NoRoomError(
            [
                Message(Sentence("mistakes.make_room", what=what), Command("launch"))
                for what in lacking
            ]
        )


def _refuse_unsmoked(project: Project) -> None:
    if not project.profile.is_billed:
        return
    skipped = passes.skipped(project)
    wanted = [cell.name for cell in project.plan.cells if cell.name not in skipped]
    if lacking := cell_smoke.lacking(project.job, wanted):
        raise InputError(
            Sentence("mistakes.no_smoke_words", what=lacking, profile=project.profile.name),
            _NO_SMOKE,
        )
    missing = passes.missing(project)
    if missing:
        raise InputError(
            Sentence(
                "mistakes.no_smoke_pass",
                n=len(missing),
                first=missing[0],
                profile=project.profile.name,
            ),
            Command("smoke", or_else=_NO_SMOKE),
        )


def _say_unknown(project: Project, unknown: passes.Unknown) -> None:
    told = launch_record.skipped_of(project.results)
    new = {name: reason for name, reason in unknown.skipped.items() if told.get(name) != reason}
    for reason, names in passes.by_reason(new).items():
        words = {"cells": some(names, _MOST_NAMED), "n": len(names), "reason": reason}
        show.say(Sentence("mistakes.unsmoked", **words))
    if unknown.not_tried and project.profile.is_billed:
        show.say(Sentence("mistakes.untried", n=unknown.not_tried))


def _with_work(site: Site, view: RunView, queues: list[str], order: Order) -> list[str]:
    """Without those that are done, where a start takes a machine from others."""
    if not site.is_start_scarce or order.start_index is not None:
        return queues
    done = [name for name in queues if _is_done(view, name)]
    for name in done:
        show.say(Sentence("good_run.nothing_left", queue=name))
    return [name for name in queues if name not in done]


def _is_done(view: RunView, queue: str) -> bool:
    cells = [cell.word for cell in view.cells if cell.queue == queue]
    is_over = all(word in ("verified", DROPPED) for word in cells)
    return is_over and view.queue(queue).condition.word == "done"


def _audited(site: Site, view: RunView, queues: list[str]) -> tuple[list[str], list[Message]]:
    """The queues whose boxes are fit for them, and what is wrong with the others."""
    if not site.needs_audit or not queues:
        return queues, []
    boxes = {queue: site.plan.queues[queue] for queue in queues}
    with show.waiting(Sentence("how_far.asking_what")):
        report = audit.of_run(site, view, boxes=list(boxes.values()))
    for boxes_alike, row in audit.of_alike_boxes(report):
        if row.verdict != "ok":
            show.say(audit.line(boxes_alike, row))
    refused = {row.box for row in report.rows if row.verdict == "refuse"}
    unfit = {queue: box for queue, box in boxes.items() if refused & {box, ALL}}
    problems = [
        Message(
            Sentence("audit.unfit", queue=queue, box=box),
            Command("launch", () if ALL in refused else ("--box", box)),
        )
        for queue, box in unfit.items()
    ]
    for problem in problems:
        show.say(problem)
    return [queue for queue in queues if queue not in unfit], problems


def _serve_all(
    site: Site, view: RunView, queues: list[str], order: Order
) -> tuple[list[Started], list[Message]]:
    """Serve each tier, side by side: what was started, and what is wrong with the others.

    Raises what went wrong where none could be served.
    """
    push.check_queues(site)
    groups = push.by_tier(site, queues)
    view = _without_deliverers(site, view, queues)
    with show.progress(Sentence("how_far.push")) as bar:
        served, errors = side_by_side.each_or_why(
            groups, lambda box: _serve(site, box, list(map(view.queue, groups[box])), order, bar)
        )
    if not served:
        side_by_side.raise_all(errors)
    push.say_release(order.built[0], is_new=any(one.is_new for one in served.values()))
    problems = [
        Message(Sentence("mistakes.not_launched", queue=queue, why=_sentence(error)), again)
        for box, error in errors.items()
        for queue, again in ((name, Command("launch", ("--box", box))) for name in groups[box])
    ]
    for problem in problems:
        show.say(problem)
    started = [one for tier in served.values() for one in tier.started]
    return started, problems + [one for tier in served.values() for one in tier.problems]


def _sentence(error: Exception) -> str:
    return message_of(error).text.rstrip(".") + "."


def _serve(site: Site, box: str, queues: list[QueueView], order: Order, bar: Progress) -> Served:
    """The release, the lines and the agents of one tier, which waits for no other."""
    made = order.built[0]
    is_new = push.serve(site, box, order.built, bar)
    by_name = {queue.name: queue for queue in queues}
    profile = site.project.profile.name
    known_runs.remember(site.plan.run, site.project.job_path, profile)
    launch_record.append(
        site.results,
        profile,
        made.digest,
        list(by_name),
        is_smoked=order.is_smoked,
        not_tried=order.unknown.not_tried,
        skipped=order.unknown.skipped,
        credentials=from_environment.credential_names(site.project.job),
    )
    prepared, errors = side_by_side.each_or_why(
        by_name, lambda name: _send_and_prepare(site, order, by_name[name], bar)
    )
    starts = {name: start for name, start in prepared.items() if start}
    begun, unstarted = site.start(starts) if starts else ({}, {})
    errors |= unstarted
    problems = [
        message_of(error).under(f"{name}: was not started") for name, error in errors.items()
    ]
    for problem in problems:
        show.say(problem)
    tried = [_started(site, order, by_name[name], by) for name, by in begun.items()]
    return Served(is_new, [one for one in tried if one], problems)


def _send_and_prepare(
    site: Site, order: Order, queue: QueueView, bar: Progress
) -> asks.Start | None:
    """How its agent is to be started; None where one runs already, or is about to."""
    push.send_queue(site, queue.name, bar)
    if queue.is_alive or queue.scheduled:
        show.say(_left_alone(queue, order.built[0].digest))
        return None
    if site.plan.durable_scope == EACH_BOX:
        # Results first: nothing continues a cell that is done.
        for lend in (lend_results.lend, lend_checkpoint.lend):
            for text in lend(site, queue.name, bar):
                show.say(text)
    moves.refuse_untold(site, queue.name)
    return _prepare_agent(site, order, queue)


def _without_deliverers(site: Site, view: RunView, queues: list[str]) -> RunView:
    """The view once no queue is held by a `watch` that delivers late webhooks; a minute at most."""
    until = time.monotonic() + PROBE_S
    while any(map(_is_held_after_its_end, map(view.queue, queues))) and time.monotonic() < until:
        time.sleep(site.boxes.tick_s)
        site.boxes.refresh()
        view = look(site, timestamp.utc_now())
    return view


def _is_held_after_its_end(queue: QueueView) -> bool:
    return bool(queue.is_alive and queue.session and queue.session.ended)


def _left_alone(queue: QueueView, digest: str) -> str:
    """What is said of an agent that runs already, or that a scheduler is to start."""
    if queue.scheduled:
        return Sentence("good_run.waits_already", queue=queue.name, why=queue.scheduled.sentence)
    kept = Sentence("good_run.left_alone", queue=queue.name)
    if queue.session is None or queue.session.release == digest:
        return kept
    return (
        f"{kept}. It keeps release {short(queue.session.release)} until it ends; {short(digest)} "
        "is for the next launch, and for lines whose config only it has"
    )


def _begins_below(queue: str, cell: str | None) -> Message:
    which = "begins_with" if cell else "begins_below"
    return Message(
        Sentence(f"mistakes.{which}", queue=queue, **({"cell": cell} if cell else {})),
        Command("launch", ("--start-index", "0")),
    )


def _prepare_agent(site: Site, order: Order, queue: QueueView) -> asks.Start:
    """Its secrets are there, and nothing tells it to end."""
    box, boxes = site.plan.queues[queue.name], site.boxes
    path = site.plan.box(box).credentials
    boxes.ask(box, asks.KeepCredentials(path, order.credentials))
    control.write(site, box, queue.name, RUN)  # takes back an earlier drain or stop
    named = (site.project.profile.detach.primary, site.project.profile.detach.fallback)
    detach = tuple(way for way in named if way in asks.DETACH_WAYS)
    index, cell = begin.begin(site, queue, order.start_index)
    if order.start_index is None and index:
        show.say(_begins_below(queue.name, cell))
    return asks.Start(queue.name, order.built[0].digest, index, detach, cell)


def _started(site: Site, order: Order, queue: QueueView, by: str) -> Started | None:
    """None where another laptop was a moment faster."""
    if by == asks.RUNNING:
        site.boxes.refresh()  # for the release that it runs
        now = look(site, timestamp.utc_now()).queue(queue.name)
        show.say(_left_alone(now, order.built[0].digest))
        return None
    return Started(queue.name, site.plan.queues[queue.name], queue.session, time.monotonic())
