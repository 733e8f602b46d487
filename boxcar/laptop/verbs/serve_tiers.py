"""What `launch` does on each tier: the release, the lines and the agents of its queues.

Tiers are served side by side, and one that cannot be served holds up no other.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from boxcar.laptop.common import home, show, side_by_side
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.project import from_environment, profile_choice
from boxcar.laptop.results.lend import lend_checkpoints, lend_results
from boxcar.laptop.run import moves, view
from boxcar.laptop.run.first_minute import Started
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.laptop.sites.site import Site
from boxcar.laptop.tryout import passes
from boxcar.laptop.verbs import control, leaving, push
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import message_of
from boxcar.shared.files.control import RUN
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.release import Release
from boxcar.shared.message import Command, Message
from boxcar.shared.record import dataclass
from boxcar.shared.wire import box_asks, run_asks


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


def serve_all(
    site: Site, view: RunView, queues: list[str], order: Order
) -> tuple[list[Started], list[Message]]:
    """Serve each tier, side by side: what was started, and what is wrong with the others.

    Raises what went wrong where none could be served.
    """
    push.check_queues(site)
    groups = push.by_tier(site, queues)
    view = leaving.until_left(site, view, queues)
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
    stopping = filter(leaving.is_stopping, map(view.queue, queues))
    problems += map(leaving.does_not_end, stopping)
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
    home.remember_run(site.plan.run, site.project.job_path, profile)
    profile_choice.append_launch(
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
) -> run_asks.Start | None:
    """How its agent is to be started; None where one runs already, or is about to."""
    push.send_queue(site, queue.name, bar)
    if leaving.is_stopping(queue):
        return None  # which is said of all of them
    if queue.is_alive or queue.scheduled:
        show.say(_left_alone(queue, order.built[0].digest))
        return None
    if site.plan.durable_scope == EACH_BOX:
        # Results first: nothing continues a cell that is done.
        for lend in (lend_results, lend_checkpoints):
            for text in lend(site, queue.name, bar):
                show.say(text)
    moves.refuse_untold(site, queue.name)
    return _prepare_agent(site, order, queue)


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


def _prepare_agent(site: Site, order: Order, queue: QueueView) -> run_asks.Start:
    """Its secrets are there, and nothing tells it to end."""
    box, boxes = site.plan.queues[queue.name], site.boxes
    path = site.plan.box(box).credentials
    boxes.ask(box, box_asks.KeepCredentials(path, order.credentials))
    control.write_control(site, box, queue.name, RUN)  # takes back an earlier drain or stop
    named = (site.project.profile.detach.primary, site.project.profile.detach.fallback)
    detach = tuple(way for way in named if way in run_asks.DETACH_WAYS)
    index, cell = view.begin_of_run(site, queue, order.start_index)
    if order.start_index is None and index:
        show.say(_begins_below(queue.name, cell))
    return run_asks.Start(queue.name, order.built[0].digest, index, detach, cell)


def _started(site: Site, order: Order, queue: QueueView, by: str) -> Started | None:
    """None where another laptop was a moment faster."""
    if by == run_asks.RUNNING:
        site.boxes.refresh()  # for the release that it runs
        now = look_at_run(site, timestamp.utc_now()).queue(queue.name)
        show.say(_left_alone(now, order.built[0].digest))
        return None
    return Started(queue.name, site.plan.queues[queue.name], queue.session, time.monotonic())
