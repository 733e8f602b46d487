"""What `launch` does on each tier: the release, the lines and the agents of its queues.

Tiers are served side by side, and one that cannot be served holds up no other.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from boxcar.laptop.common import home, show, side_by_side
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import from_environment, launches
from boxcar.laptop.results.lend import lend_checkpoints, lend_results
from boxcar.laptop.run import moves, relaunch, view
from boxcar.laptop.run.first_minute import Started
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.laptop.tryout import passes
from boxcar.laptop.verbs import control, push, serve_tier
from boxcar.shared import names, timestamp
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    Message,
    message_of,
)
from boxcar.shared.files.control import RUN, Control
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.release import Release
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire import box_asks, run_asks
from boxcar.shared.wire.envelope import Replies
from boxcar.shared.wire.question import Question


@dataclass(frozen=True)
class Order:
    """What every agent of this launch gets: the release, where to begin, and the secrets.

    `start_index` is None where nobody typed one: a queue begins where it did before. `begin_until`:
    when the job's budget is spent at most, by this machine's clock.
    """

    built: tuple[Release, Path]
    start_index: int | None
    is_smoked: bool
    unknown: passes.Unknown
    credentials: dict[str, Any]
    begin_until: str | None = None
    sets_up_again: bool = False


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
    groups = serve_tier.by_tier(site, queues)
    view = control.until_left(site, view, queues)
    with show.progress(_("push")) as bar:
        served, errors = side_by_side.each_or_why(
            groups, lambda box: _serve(site, box, list(map(view.queue, groups[box])), order, bar)
        )
    if not served:
        side_by_side.raise_all(errors)
    push.say_release(order.built[0], is_new=any(one.is_new for one in served.values()))
    problems = [
        Message(
            _(
                "{queue}: not launched: {why}. When that is fixed",
                queue=queue,
                why=_sentence(error),
            ),
            again,
        )
        for box, error in errors.items()
        for queue, again in ((name, Command("launch", ("--box", box))) for name in groups[box])
    ]
    for later in relaunch.retried_later(view, queues):
        show.say(later)
    stopping = filter(control.is_stopping, map(view.queue, queues))
    problems += map(control.does_not_end, stopping)
    for problem in problems:
        show.say(problem)
    started = [one for tier in served.values() for one in tier.started]
    return started, problems + [one for tier in served.values() for one in tier.problems]


def _sentence(error: Exception) -> str:
    text = message_of(error).text
    return text.removesuffix(".") if text.endswith(".") else text


def _serve(site: Site, box: str, queues: list[QueueView], order: Order, bar: Progress) -> Served:
    """The release, the lines and the agents of one tier, which waits for no other."""
    made = order.built[0]
    by_name = {queue.name: queue for queue in queues}
    asked: dict[str, _Asked] = {}

    def remember() -> None:
        profile = site.project.profile.name
        home.remember_run(site.plan.run, site.project.job_path, profile)
        launches.append_launch(
            site.results,
            profile,
            made.digest,
            list(by_name),
            is_smoked=order.is_smoked,
            not_tried=order.unknown.not_tried,
            skipped=order.unknown.skipped,
            credentials=from_environment.credential_names(site.project.job),
            place=site.launch_place,
        )

    def want(name: str) -> serve_tier.Wanted:
        asked[name] = _ask_for(site, order, by_name[name], bar)
        return serve_tier.Wanted(site.plan.queues[name], asked[name].questions)

    files = dict.fromkeys(names.file_of(name) for name in by_name if names.is_member(name))
    lines = {file: serve_tier.lines_of(site, file, bar) for file in files}
    served = serve_tier.serve(
        *(site, box, order.built, list(by_name), want),
        bar=bar,
        on_sent=remember,
        # An agent that comes before the lines of its pool would find no file.
        before=[question for one in lines.values() for question in one.questions],
    )
    for file, one in lines.items():
        serve_tier.say_change(site, file, one)
    ways, errors = side_by_side.each_or_why(
        # As the job has them: the threads that asked ended in whatever order.
        [name for name in by_name if name in asked and name not in served.errors],
        lambda name: _way_of_start(site, name, asked[name], served.replies.get(name)),
    )
    left = {name: start for name, way in ways.items() if not way and (start := asked[name].start)}
    submitted, unstarted = site.start(left)
    errors |= served.errors | unstarted
    problems = [
        message_of(error).under(_("{name}: not started", name=name))
        for name, error in errors.items()
    ]
    for problem in problems:
        show.say(problem)
    begun = {name: way for name, way in ways.items() if way} | submitted
    tried = [_started(site, order, by_name[name], way) for name, way in begun.items()]
    return Served(served.is_new, [one for one in tried if one], problems)


@dataclass(frozen=True)
class _Asked:
    """What a queue's box is asked at once: for its lines, then for its agent where `start` says
    how. `why_not` keeps the agent from being started.
    """

    lines: serve_tier.Lines
    start: run_asks.Start | None
    questions: tuple[Question[Any], ...]
    why_not: Exception | None = None


def _ask_for(site: Site, order: Order, queue: QueueView, bar: Progress) -> _Asked:
    is_sent = names.is_member(queue.name)  # once for the whole pool
    lines = serve_tier.NO_LINES if is_sent else serve_tier.lines_of(site, queue.name, bar)
    try:
        start = _how_to_start(site, order, queue, bar)
    except (BoxcarError, OSError) as error:
        return _Asked(lines, None, lines.questions, error)
    if start is None:
        return _Asked(lines, None, lines.questions)
    box = site.plan.box(site.plan.queues[queue.name])
    credentials = box_asks.KeepCredentials(box.credentials, order.credentials)
    # Takes back an earlier drain or stop.
    control_file = run_asks.WriteControl(queue.name, _control(order, queue))
    starting = site.start_question(start)
    agent = (credentials, control_file, *((starting,) if starting else ()))
    return _Asked(lines, start, (*lines.questions, *agent))


def _control(order: Order, queue: QueueView) -> Control:
    """The budget's instant by the box's own clock."""
    until = order.begin_until
    mine = timestamp.after(until, queue.clock_ahead_s) if until else None
    return Control(RUN, timestamp.utc_now(), begin_until=mine)


def _way_of_start(site: Site, name: str, asked: _Asked, replies: Replies | None) -> str:
    """By what its agent was started; "" where it was not. Raises why it could not be."""
    serve_tier.say_lines(site, name, asked.lines, replies)
    if asked.why_not:
        raise asked.why_not
    answers = [replies.to(question) for question in asked.questions] if replies else []
    return next((one.by for one in answers if isinstance(one, run_asks.Started)), "")


def _how_to_start(
    site: Site, order: Order, queue: QueueView, bar: Progress
) -> run_asks.Start | None:
    """None where an agent runs already, or is about to."""
    if control.is_stopping(queue):
        return None  # which is said of all of them
    if queue.is_alive or queue.scheduled:
        show.say(relaunch.left_alone(queue, order.built[0].digest))
        if order.sets_up_again:
            left = _(
                "{queue}: its box is set up again by a new agent only. To end this one",
                queue=queue.name,
            )
            show.say(Message(left, Command("drain")))
        return None
    if site.plan.durable_scope == EACH_BOX:
        # Results first: nothing continues a cell that is done.
        for lend in (lend_results, lend_checkpoints):
            for text in lend(site, queue.name, bar):
                show.say(text)
    moves.refuse_untold(site, queue.name)
    lines = [cell.name for cell in site.plan.cells]
    if over := relaunch.starts_over(queue, order.built[0].digest, lines):
        show.say(over)
    named = (site.project.profile.detach.primary, site.project.profile.detach.fallback)
    detach = tuple(way for way in named if way in run_asks.DETACH_WAYS)
    index, cell = view.begin_of_run(site, queue, order.start_index)
    if index and (order.start_index is None or cell is None):
        show.say(relaunch.begins_below(queue.name, cell))
    again = order.sets_up_again
    return run_asks.Start(queue.name, order.built[0].digest, index, detach, cell, again)


def _started(site: Site, order: Order, queue: QueueView, by: str) -> Started | None:
    """None where another laptop was a moment faster."""
    if by == run_asks.RUNNING:
        site.refresh()  # for the release that it runs
        now = look_at_run(site, timestamp.utc_now()).queue(queue.name)
        show.say(relaunch.left_alone(now, order.built[0].digest))
        return None
    return Started(queue.name, site.plan.queues[queue.name], queue.session, time.monotonic())
