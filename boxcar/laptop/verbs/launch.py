"""Start a run, or go on with it: audit, push, hand over secrets, start each queue's agent, look.

Launching again is harmless: an agent that runs is left alone, cells that are verified stay so, and
cells that failed are tried again. The last step is a look at what really runs, within a minute.
A box that cannot take its queue holds up no other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.fitness import other_runs, space, training_python
from boxcar.laptop.fitness.rules import ALL
from boxcar.laptop.news import from_here
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import cell_faults, from_environment, launches, profile_choice
from boxcar.laptop.project.checks import todos
from boxcar.laptop.project.from_environment import Target, credentials, targets
from boxcar.laptop.project.notify.endpoints import BOX
from boxcar.laptop.project.profiles.page import first_look
from boxcar.laptop.project.project import Project
from boxcar.laptop.release.build import build
from boxcar.laptop.run import moves
from boxcar.laptop.run.first_minute import Started, probe
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import DROPPED, RunView
from boxcar.laptop.teardown.gate import reasons_to_give_up
from boxcar.laptop.tryout import passes
from boxcar.laptop.verbs import (
    audit,
    even_out,
    listen,
    members,
    push,
    send_data,
    spending,
    start_queues,
)
from boxcar.laptop.verbs.box_deadline import lay_deadlines
from boxcar.laptop.verbs.next_step import next_step
from boxcar.laptop.verbs.start_queues import Order
from boxcar.shared import timestamp
from boxcar.shared.errors import (
    Command,
    InputError,
    Message,
    NoRoomError,
    message_of,
    some,
)
from boxcar.shared.files.plan import AUTO
from boxcar.shared.files.release import Release
from boxcar.shared.record import replace
from boxcar.shared.sentence import _

_MOST_NAMED = 3
_NO_SMOKE = Command("launch", ("--no-smoke",), note=_("this is recorded"))


def launch(
    project: Project,
    *,
    start_index: int | None = None,
    boxes: Sequence[str] | None = None,
    is_smoked: bool = True,
    is_beside: bool = False,
    sets_up_again: bool = False,
    gone: Sequence[str] = (),
    because: str | None = None,
    as_json: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Launch the queues (of the named boxes, or all); 1 where one of them does not really run.

    `is_smoked`: on a platform that bills, each cell needs a smoke pass. `is_beside`: it may start
    where others are at work; else a person is asked, if there is one (and not `as_json`). `gone`
    names boxes of pools that will never answer again. `sets_up_again`: the set-up of each box is
    done anew, before its first cell. Raises InputError for what the person has to fix; nothing was
    touched then.
    """
    project = push.sort_new_lines(push.write_dealt_lines(project))
    with open_site(project, show.say) as site:
        site.refuse_launch()
        if sets_up_again:
            _refuse_no_set_up(project)
        reasons_to_give_up((), gone, because)
        chosen = _chosen(project, boxes, start_index)
        queues = [name for name in chosen if project.plan.queues[name] not in gone]
        unknown = _refuse_first(site, queues, is_smoked=is_smoked)
        told = targets(project.job, environ, BOX)
        secrets = from_environment.resolve_secrets(project.job, environ)
        given = {"env": secrets, **credentials(told)}
        given |= {"language": project.job.language or language_of("", environ)}
        built = _build_release(project)
        order = Order(built, start_index, is_smoked, unknown, given, sets_up_again=sets_up_again)
        with moves.take_turn(site.results, show.say):
            may_start = is_beside or (None if sys.stdin.isatty() and not as_json else False)
            queues, started, problems = _in_turn(site, queues, order, may_start, gone)
        lay_deadlines(
            site, {project.plan.queues[one] for one in chosen} - {*gone, *site.silent_boxes()}
        )
        with show.waiting(_("checking that the first cells really run (up to a minute)")):
            problems += probe(site, started, show.say)
        if as_json:
            row = {"run": site.plan.run, "release": built[0].digest if queues else None}
            queues_started = [one.queue for one in started]
            show.json_document("launch", row | {"started": queues_started, "problems": problems})
        _say_who_hears_nothing(project, told)
        if started and not problems:
            _say_what_comes(project, environ)
        if not problems:
            _say_next(site)
        return 1 if problems else 0


def _refuse_first(site: Site, queues: list[str], *, is_smoked: bool) -> passes.Unknown:
    """All that can be refused before anything is built or sent; which cells no smoke test has
    tried. Raises InputError, NoRoomError.
    """
    project = site.project
    push.refuse_a_finished_run(project)
    push.refuse_a_tier_out_of_sight(site)
    profile_choice.remember_profile(project.results, project.profile.name, profile_choice.LAUNCHED)
    _refuse_full_disks(site, queues)
    _refuse_no_python(site)
    if project.profile.is_billed:
        todos.refuse_costly(project.job_path)
    unknown = passes.unknown(project)
    if is_smoked:
        _refuse_unsmoked(project)
        _say_unknown(project, unknown)
    push.check_queues(site)  # as the tier was last seen; nothing is written for a refusal
    return unknown


def _build_release(project: Project) -> tuple[Release, Path]:
    send_data.read_before(project)
    with show.waiting(_("building the release")):
        built = build(project, show.say)
    for text in first_look(project.profile, project.root):
        show.say(text)
    return built


def _say_who_hears_nothing(project: Project, told: Sequence[Target]) -> None:
    """Beside the last line: what stands before all others is read by nobody."""
    warnings: list[str | Message] = [one.warning for one in told if one.off]
    for warning in (*warnings, *listen.unheard(project, credentials(told)["webhooks"])):
        show.say(warning)


def _say_next(site: Site) -> None:
    step = next_step(look_at_run(site, timestamp.utc_now()), site)
    show.say(Message(_("Next"), step.command or Command("watch")))


def _say_what_comes(project: Project, environ: Mapping[str, str]) -> None:
    """A person leaves now: how they hear of the run."""
    if heard := [one.label for one in targets(project.job, environ) if one.endpoint]:
        show.say(_("notifications go to {endpoints}", endpoints=", ".join(heard)))
    else:
        show.say(
            Message(
                _("no notifications are set up: add notify: to job.yaml. To test it then"),
                Command("notify", ("--test",)),
            )
        )


def _in_turn(
    site: Site, queues: list[str], order: Order, may_start: bool | None, gone: Sequence[str]
) -> tuple[list[str], list[Started], list[Message]]:
    """The queues whose boxes are fit, which of them were started, and what is wrong. `may_start`:
    beside others; None where a person is to be asked. `gone` boxes give their cells back before.
    """
    with show.waiting(_("asking the boxes")):
        # An agent that was killed a moment ago is to be started again, and not left alone.
        site.refresh(is_exact=True)
    moves.tell_boxes(site, show.say)
    view = look_at_run(site, timestamp.utc_now())
    from_here.begin_news(site, view, os.environ)
    unrunnable = push.say_mixed(site, view, order.built[0], is_mixed=False)
    if gone:
        site.give_up_boxes(gone)
        members.give_back(site, view, gone, queues)
        site.refresh()
        view = look_at_run(site, timestamp.utc_now())
    order = replace(order, begin_until=spending.begin_until_of_launch(site, view))
    if members.drain_left(site, view):
        site.refresh()
        view = look_at_run(site, timestamp.utc_now())
    if even_out.even_out(site, view, queues):
        site.refresh()
        view = look_at_run(site, timestamp.utc_now())
    queues, problems = _audited(site, view, _with_work(site, view, queues, order), may_start)
    problems += unrunnable
    if not queues:
        return queues, [], problems
    queues, dataless = _with_data(site, queues, order)
    problems += dataless
    if not queues:
        return queues, [], problems
    started, unstarted = start_queues.serve_all(site, view, queues, order)
    return queues, started, problems + unstarted


def _with_data(site: Site, queues: list[str], order: Order) -> tuple[list[str], list[Message]]:
    """The queues whose boxes have the job's data now, and what is wrong with the others."""
    boxes = {queue: site.plan.queues[queue] for queue in queues}
    lacking = send_data.send_data(site, boxes.values(), order.built[1])
    problems = [
        Message(
            _(
                "{queue}: not launched: {why}. When that is fixed",
                queue=queue,
                why=message_of(lacking[box]).text.removesuffix("."),
            ),
            Command("launch", ("--box", box)),
        )
        for queue, box in boxes.items()
        if box in lacking
    ]
    for problem in problems:
        show.say(problem)
    return [queue for queue, box in boxes.items() if box not in lacking], problems


def _chosen(project: Project, boxes: Sequence[str] | None, start_index: int | None) -> list[str]:
    known = project.plan.queues
    chosen = pick(boxes or (), known.values(), what="box", of=the_run(project.plan.run))
    if start_index is not None and start_index < 0:
        raise InputError(_("--start-index counts cells from 0, found {number}", number=start_index))
    return [queue for queue, box in known.items() if not chosen or box in chosen]


def _refuse_no_set_up(project: Project) -> None:
    if not (project.plan.setup or project.plan.install):
        raise InputError(
            _("--setup: there is nothing to do again: job.yaml has no setup: and no install: yes")
        )
    if project.profile.is_cluster:
        raise InputError(
            _("--setup: not on a cluster, where a job starts the agent. Change a line of setup:")
        )


def _refuse_full_disks(site: Site, queues: list[str]) -> None:
    """Of this machine: of rented boxes the audit says it."""
    boxes = {site.plan.queues[queue] for queue in queues}
    if lacking := space.folders_without_room(site.folders_here(boxes)):
        raise NoRoomError(
            [
                Message(_("{what}. Free some space, then", what=what), Command("launch"))
                for what in lacking
            ]
        )


def _refuse_no_python(site: Site) -> None:
    """On this machine, and where a person named one."""
    profile = site.project.profile
    if site.needs_audit or profile.env.training_python == AUTO:
        return
    with show.waiting(_("checking the boxes")):
        ended = training_python.ended_otherwise(site.plan, profile.hook)
    if ended:
        python = site.plan.training_python
        what = _(
            "{profile}: training_python must be a working Python (it also checks the results), "
            "but {python} ended with {ended}. Fix it, then",
            python=python,
            ended=ended,
            profile=profile.name,
        )
        raise InputError(what, Command("launch"))


def _refuse_unsmoked(project: Project) -> None:
    if not project.profile.is_billed:
        return
    skipped = passes.skipped(project)
    wanted = [cell.name for cell in project.plan.cells if cell.name not in skipped]
    if lacking := cell_faults.cells_without_smoke(project.job, wanted):
        raise InputError(
            _(
                "{what}. {profile} bills from the first minute, so test here first: add smoke: "
                "(such as smoke: --limit-batches 2 --epochs 1). Or launch without",
                what=lacking,
                profile=project.profile.name,
            ),
            _NO_SMOKE,
        )
    missing = passes.missing(project)
    if missing:
        raise InputError(
            _(
                "{n} {n:cell|cells} (e.g. {first}) {n:has|have} not passed a smoke test as {n:it "
                "is|they are} now. Test {n:it|them} here first; {profile} bills from the first "
                "minute",
                n=len(missing),
                first=missing[0],
                profile=project.profile.name,
            ),
            Command("smoke", or_else=_NO_SMOKE),
        )


def _say_unknown(project: Project, unknown: passes.Unknown) -> None:
    told = launches.skipped_of(project.results)
    new = {name: reason for name, reason in unknown.skipped.items() if told.get(name) != reason}
    for reason, names in passes.by_reason(new).items():
        words = {"cells": some(names, _MOST_NAMED), "n": len(names), "reason": reason}
        show.say(_("{cells} {n:is|are} launched without a smoke test: {reason}", **words))
    if unknown.not_tried and project.profile.is_billed:
        untried = _(
            "{n} {n:cell was|cells were} not smoke-tested (similar cells were). To test all "
            "of them",
            n=unknown.not_tried,
        )
        show.say(Message(untried, Command("smoke", ("--all",))))


def _with_work(site: Site, view: RunView, queues: list[str], order: Order) -> list[str]:
    """Without those that are done: their event logs, once pulled, stay as they are. A box that was
    rented anew gets its results again.
    """
    if order.start_index is not None:
        return queues
    there = [name for name in queues if not site.has_lost_its_tier(site.plan.queues[name])]
    done = [name for name in there if _is_done(view, name)]
    for name in done:
        show.say(_("{queue}: all its cells are verified, so nothing is started", queue=name))
    return [name for name in queues if name not in done]


def _is_done(view: RunView, queue: str) -> bool:
    left = [cell for cell in view.cells if cell.word not in ("verified", DROPPED)]
    is_over = all(queue != one.name for cell in left for one in view.queues_of(cell))
    return is_over and view.queue(queue).condition.word == "done"


def _audited(
    site: Site, view: RunView, queues: list[str], may_start: bool | None
) -> tuple[list[str], list[Message]]:
    """The queues whose boxes are fit for them, and what is wrong with the others."""
    if not site.needs_audit or not queues:
        _say_beside_here(site, queues)
        return queues, []
    boxes = {queue: site.plan.queues[queue] for queue in queues}
    with show.waiting(_("checking the boxes")):
        report = audit.of_run(site, view, boxes=list(boxes.values()))
    for boxes_alike, row in audit.of_alike_boxes(report):
        if row.verdict != "ok":
            show.say(audit.line(boxes_alike, row))
    _refuse_beside(report, _to_start(view, boxes), may_start)
    refused = {row.box for row in report.rows if row.verdict == "refuse"}
    unfit = {queue: box for queue, box in boxes.items() if refused & {box, ALL}}
    problems = [
        Message(
            _(
                "{queue}: not launched: {box} failed the audit. When that is fixed",
                queue=queue,
                box=box,
            ),
            Command("launch", () if ALL in refused else ("--box", box)),
        )
        for queue, box in unfit.items()
    ]
    for problem in problems:
        show.say(problem)
    return [queue for queue in queues if queue not in unfit], problems


def _to_start(view: RunView, boxes: Mapping[str, str]) -> set[str]:
    """The boxes on which an agent is to be started: one that runs is left alone, as it was."""
    queues = {name: view.queue(name) for name in boxes}
    return {boxes[name] for name, at in queues.items() if not (at.is_alive or at.scheduled)}


def _refuse_beside(report: audit.Report, boxes: Collection[str], may_start: bool | None) -> None:
    """Raise InputError where others are at work on these boxes, and nobody says that it may be."""
    taken = [row.box for row in report.rows if row.what == other_runs.WHAT and row.box in boxes]
    if not taken or may_start:
        return
    names = {"boxes": ", ".join(taken)}
    if may_start is None and _is_yes(
        _("{boxes}: other jobs are running there. Start anyway? [y/N] ", **names)
    ):
        return
    raise InputError(
        _(
            "{boxes}: other jobs are running there, so nothing was started. To start anyway",
            **names,
        ),
        Command("launch", ("--beside",)),
    )


def _say_beside_here(site: Site, queues: list[str]) -> None:
    """On the person's own machine, where any box sees it all."""
    first = [site.plan.queues[queue] for queue in queues][:1]
    for row in other_runs.check(site.ask, first, other_runs.gpus_of_run(site.plan), "ok"):
        show.say(_("also running on this machine: {others}", others=row.found))


def _is_yes(question: str) -> bool:
    return show.ask(question).lower() in ("y", "yes")
