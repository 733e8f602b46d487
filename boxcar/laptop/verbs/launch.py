"""Start a run, or go on with it: audit, push, hand over secrets, start each queue's agent, look.

Launching again is harmless: an agent that runs is left alone, cells that are verified stay so, and
cells that failed are tried again. The last step is a look at what really runs, within a minute.
A box that cannot take its queue holds up no other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxcar.laptop.common import show
from boxcar.laptop.common.near import pick
from boxcar.laptop.fitness.rules import ALL
from boxcar.laptop.profiles.page import first_look
from boxcar.laptop.project import job, launch_record
from boxcar.laptop.project.project import Project
from boxcar.laptop.release.build import build
from boxcar.laptop.run.first_minute import PROBE_S, Started, probe
from boxcar.laptop.run.look import look
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.laptop.sites.open_site import open_site
from boxcar.laptop.sites.site import Site
from boxcar.laptop.tryout import passes
from boxcar.laptop.verbs import audit, control, push
from boxcar.shared import timestamp
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import BoxcarError, InputError, message_of
from boxcar.shared.files.control import RUN
from boxcar.shared.files.release import Release
from boxcar.shared.message import Command, Message, counted
from boxcar.shared.wire import asks

MOST_AT_ONCE = 20
_NO_SMOKE = Command("launch", ("--no-smoke",), note="it is recorded")


@dataclass(frozen=True)
class Order:
    """What every agent of this launch gets: the release, where to begin, and the secrets."""

    release: Release
    start_index: int
    credentials: dict[str, Any]


def launch(
    project: Project,
    *,
    start_index: int = 0,
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
        webhooks, warnings = job.resolve_webhooks(project.job, environ)
        secrets = job.resolve_secrets(project.job, environ)
        if is_smoked:
            _refuse_unsmoked(project)
        push.check_queues(site)  # as the tier was last seen; nothing is written for a refusal
        built = build(project, show.say)
        for warning in warnings:
            show.say(warning)
        for text in first_look(project.profile, project.root):
            show.say(text)
        with show.waiting("asking the boxes"):
            site.boxes.refresh()
        view = look(site, timestamp.utc_now())
        queues, problems = _audited(site, view, queues)
        started: list[Started] = []
        if queues:
            made = _push(site, built, queues)
            launch_record.append(
                site.results, project.profile.name, made.digest, queues, is_smoked=is_smoked
            )
            order = Order(made, start_index, {"env": dict(secrets), "webhooks": webhooks})
            started, unstarted = _start_all(site, view, queues, order)
            problems += unstarted
        with show.waiting("watching whether the first cells really run, for up to a minute"):
            problems += probe(site, started, show.say)
        if as_json:
            row = {"run": site.plan.run, "release": made.digest if queues else None}
            queues_started = [one.queue for one in started]
            show.json_document(row | {"started": queues_started, "problems": problems})
        return 1 if problems else 0


def _chosen(project: Project, boxes: list[str] | None, start_index: int) -> list[str]:
    known = project.plan.queues
    chosen = pick(boxes or (), known.values(), what="box", of=f"the run {project.plan.run}")
    if start_index < 0:
        raise InputError(f"--start-index counts cells from 0, found {start_index}")
    return [queue for queue, box in known.items() if not chosen or box in chosen]


def _refuse_unsmoked(project: Project) -> None:
    if not project.profile.is_billed:
        return
    if not project.job.smoke:
        raise InputError(
            f"{project.job.at('smoke')}: {project.profile.name} bills, and the job does not say "
            "how to try its cells for two batches on this machine first: add smoke: (such as "
            "smoke: --limit-batches 2 --epochs 1), or launch without",
            _NO_SMOKE,
        )
    missing = passes.missing(project)
    if missing:
        raise InputError(
            f"{counted(len(missing), 'cell')} without a smoke pass for what would run now, such as "
            f"{missing[0]}, and {project.profile.name} bills for what two batches on this machine "
            "would show",
            Command("smoke", or_else=_NO_SMOKE),
        )


def _audited(site: Site, view: RunView, queues: list[str]) -> tuple[list[str], list[Message]]:
    """The queues whose boxes are fit for them, and what is wrong with the others."""
    if not site.needs_audit:
        return queues, []
    boxes = {queue: site.plan.queues[queue] for queue in queues}
    with show.waiting("asking the boxes what they are"):
        report = audit.of_run(site, view, boxes=list(boxes.values()))
    for boxes_alike, row in audit.of_alike_boxes(report):
        if row.verdict != "ok":
            show.say(
                f"{row.verdict}: {boxes_alike}: {row.what}: {row.found}. {show.typed(row.reason)}"
            )
    refused = {row.box for row in report.rows if row.verdict == "refuse"}
    unfit = {queue: box for queue, box in boxes.items() if refused & {box, ALL}}
    problems = [
        Message(
            f"{queue}: was not launched: the audit refuses {box}. When that is fixed",
            Command("launch", ("--box", box)),
        )
        for queue, box in unfit.items()
    ]
    for problem in problems:
        show.say(problem)
    return [queue for queue in queues if queue not in unfit], problems


def _push(site: Site, built: tuple[Release, Path], queues: list[str]) -> Release:
    push.check_queues(site)
    boxes = [site.plan.queues[queue] for queue in queues]
    made, _ = push.send_release(site, built, boxes)
    push.send_queues(site, queues)
    return made


def _start_all(
    site: Site, view: RunView, queues: list[str], order: Order
) -> tuple[list[Started], list[Message]]:
    """Start the agents that do not run, side by side: what was started, and what is wrong."""
    view = _without_deliverers(site, view, queues)
    idle = [queue for queue in map(view.queue, queues) if not queue.is_alive]
    for queue in map(view.queue, queues):
        if queue.is_alive:
            show.say(_left_alone(queue, order.release.digest))
    if not idle:
        return [], []
    with ThreadPoolExecutor(min(MOST_AT_ONCE, len(idle))) as pool:
        tried = list(pool.map(lambda queue: _try_to_start(site, order, queue), idle))
    problems = [one for one in tried if isinstance(one, Message)]
    for problem in problems:
        show.say(problem)
    return [one for one in tried if isinstance(one, Started)], problems


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
    """What is said of an agent that runs already."""
    kept = f"{queue.name}: its agent is running and was left alone"
    if queue.session is None or queue.session.release == digest:
        return kept
    return (
        f"{kept}. It keeps release {short(queue.session.release)} until it ends; {short(digest)} "
        "is for the next launch"
    )


def _try_to_start(site: Site, order: Order, queue: QueueView) -> Started | Message | None:
    """None where another laptop was a moment faster."""
    try:
        return _start_agent(site, order, queue)
    except (BoxcarError, OSError) as error:
        return message_of(error).under(f"{queue.name}: was not started")


def _start_agent(site: Site, order: Order, queue: QueueView) -> Started | None:
    box, boxes = site.plan.queues[queue.name], site.boxes
    path = site.plan.box(box).credentials
    boxes.ask(box, asks.KeepCredentials(path, order.credentials))
    control.write(site, box, queue.name, RUN)  # takes back an earlier drain or stop
    named = (site.project.profile.detach.primary, site.project.profile.detach.fallback)
    detach = tuple(way for way in named if way in asks.DETACH_WAYS)
    start = asks.Start(queue.name, order.release.digest, order.start_index, detach)
    if boxes.ask(box, start).by == asks.RUNNING:
        show.say(f"{queue.name}: its agent is running and was left alone")
        return None
    return Started(queue.name, box, queue.session, time.monotonic())
