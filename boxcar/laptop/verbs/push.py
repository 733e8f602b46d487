"""Put the release and the queue files on the durable tier. What lies there is never overwritten.

A release is sent under an unfinished name, checked on the box, and then takes its digest as its
name: the same inputs change nothing, and a queue that runs keeps the release it was started with.
A tier that boxes share gets it once; boxes with a tier of their own are served side by side, and
one that fails holds up no other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import dealt_queues, profile_choice
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.project.queues import cell_cost, rewrite, sync
from boxcar.laptop.release.build import build
from boxcar.laptop.run import mixed_code, relaunch
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.mixed_code import NewLines, ToPush
from boxcar.laptop.run.view import RunView
from boxcar.laptop.verbs import send_data, split
from boxcar.laptop.verbs.serve_tier import (
    Lines,
    Served,
    Wanted,
    box_for_lines,
    by_tier,
    lines_of,
    say_lines,
    serve,
)
from boxcar.shared import names, timestamp
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import Command, InputError, Message, message_of
from boxcar.shared.files import receipt
from boxcar.shared.files.release import Release
from boxcar.shared.sentence import Sentence, _, mark


def push(project: Project, *, is_mixed: bool = False, as_json: bool = False) -> int:
    """Build the release, send it if it is not there yet, and append the queues' new lines.

    `is_mixed`: also where new lines run other code than the cells before them, because the agent at
    work keeps its release. 1 where a line cannot run before a person has done something.
    """
    project = sort_new_lines(write_dealt_lines(project))
    with open_site(project, show.say) as site:
        site.refuse_launch()
        refuse_a_finished_run(project)
        refuse_a_tier_out_of_sight(site)
        profile_choice.remember_profile(
            project.results, project.profile.name, profile_choice.PUSHED
        )
        with show.waiting(_("asking the boxes")):
            site.refresh()
        check_queues(site)
        groups = by_tier(site, list(project.queue_files))
        send_data.read_before(project)
        with show.waiting(_("building the release")):
            built = build(project, show.say)
        view = look_at_run(site, timestamp.utc_now())
        problems = say_mixed(site, view, built[0], is_mixed=is_mixed)
        lacking = send_data.send_data(site, _boxes_of(site, groups), built[1])
        groups = {box: queues for box, queues in groups.items() if box not in lacking}
        with show.progress(_("push")) as bar:
            served, unserved = side_by_side.each_or_why(
                groups, lambda box: _push_to(site, box, built, groups[box], bar)
            )
        unserved |= lacking
        is_new = any(one.is_new for one, _lines in served.values())
        if served:
            say_release(built[0], is_new=is_new)
        queues, unsent = _say_sent(site, served.values())
        if as_json:
            errors = (unserved | unsent).items()
            told = [*(message_of(error).under(name) for name, error in errors), *problems]
            _show_document(built[0], is_new, queues, told)
        side_by_side.raise_all(unserved | unsent)
        sent = [queue for queue in site.plan.queues if names.file_of(queue) in queues]
        for later in relaunch.retried_later(view, sent):
            show.say(later)
        return 1 if problems else 0


def _boxes_of(site: Site, groups: Mapping[str, Sequence[str]]) -> list[str]:
    files = dict.fromkeys(names.file_of(name) for group in groups.values() for name in group)
    return [box for file in files for box in site.plan.boxes_of_files[file]]


def write_dealt_lines(project: Project) -> Project:
    """With the new lines of a file that boxes without a shared tier share in the files of these
    boxes. Raises InputError where that file was one box's before: its cells would run twice.
    """
    if not project.to_deal:
        return project
    with open_site(project, show.say) as site:
        site.refresh()
        for file in dealt_queues.pools_of_job(project.job, project.profile):
            if site.tier.journal(Path(file).stem).exists():
                raise InputError(
                    _(
                        "{file} was one box's queue in this run, so it cannot be dealt out to "
                        "several. Write the cells that are left to another file for these boxes",
                        file=file,
                    )
                )
    rewrite.write_queue(project.root, project.to_deal)
    for path in project.to_deal:
        show.say(_("{file}: lines dealt out to this box", file=path.name))
    return open_project(project.job_path, project.profile.name)


def sort_new_lines(project: Project) -> Project:
    """Where `order: longest` is said, with the new lines of its queue files sorted, as far as it is
    known how long cells take and what was pushed.
    """
    if project.job.order != "longest":
        return project
    costs, unit = cell_cost.costs_of_cells(project.plan.cells, split.measured(project), {}, {})
    if unit != cell_cost.SECONDS:
        show.say(_("order: longest: no earlier run says how long a cell takes; order unchanged"))
        return project
    with open_site(project, show.say) as site:
        site.refresh()
        if site.silent_boxes():
            return project
        tier = site.tier
    amounts = {name: cost.amount for name, cost in costs.items()}
    changed = {}
    for name, path in project.queue_files.items():
        data, there = path.read_bytes(), sync.read_tier_queue(tier.queue(name))
        if (after := rewrite.longest_first(data, there, amounts)) != sync.complete(data):
            changed[path.resolve()] = after
            show.say(_("{file}: new lines sorted, the longest first", file=path.name))
    if not changed:
        return project
    rewrite.write_queue(project.root, changed)
    return open_project(project.job_path, project.profile.name)


def _push_to(
    site: Site, box: str, built: tuple[Release, Path], names: Sequence[str], bar: Progress
) -> tuple[Served, dict[str, Lines]]:
    found: dict[str, Lines] = {}

    def want(name: str) -> Wanted:
        found[name] = lines_of(site, name, bar)
        return Wanted(box_for_lines(site, name), found[name].questions)

    return serve(site, box, built, names, want, bar=bar), found


def _say_sent(
    site: Site, served: Iterable[tuple[Served, dict[str, Lines]]]
) -> tuple[dict[str, str], dict[str, Exception]]:
    """What was done for each queue, and why it was not for others."""
    by_name = {name: (one, lines[name]) for one, lines in served for name in lines}
    unsent = {name: error for one, _lines in served for name, error in one.errors.items()}

    def say(name: str) -> str:
        one, lines = by_name[name]
        return say_lines(site, name, lines, one.replies.get(name))

    said, refused = side_by_side.each_or_why([n for n in by_name if n not in unsent], say)
    return said, unsent | refused


def _show_document(
    made: Release, is_new: bool, queues: dict[str, str], problems: list[Message]
) -> None:
    document = {"release": made.digest, "is_new": is_new, "code": made.code, "queues": queues}
    show.json_document("push", document | {"problems": problems})


def say_mixed(site: Site, view: RunView, made: Release, *, is_mixed: bool) -> list[Message]:
    """Say what new lines will run on; those that cannot run before a person does something.

    Raises InputError, before anything is sent, where they would run other code than the cells
    before them, and nobody has said that they may.
    """
    new = ToPush(site.tier, made, site.plan, _not_run(site.project))
    found = mixed_code.new_lines(view, new)
    if not is_mixed and (mixed := [_mixed(lines, made) for lines in found if lines.other]):
        raise InputError(mixed)
    for lines in found:
        if not lines.refused:
            show.say(
                _(
                    "{queue}: {cells} will run on release {release}; all other cells stay on {old}",
                    **_of_lines(lines, made),
                )
            )
    for lines in mixed_code.lines_on_old_code(view, new):
        show.say(_on_old_code(lines, made))
    problems = [_not_taken(lines, made) for lines in found if lines.refused]
    lacking = mixed_code.without_config(site.tier, site.plan.boxes_of_files, made)
    problems += [_nowhere(site, name, lines) for name, lines in lacking.items()]
    for problem in problems:
        show.say(problem)
    return problems


def _not_run(project: Project) -> list[str]:
    """Files that may lie in the code folder and change no cell by themselves."""
    code = project.root / project.job.code
    files = [*project.queue_files.values(), project.root / "job.yaml"]
    return [os.path.relpath(file, code) for file in files]


def _mixed(lines: NewLines, made: Release) -> Message:
    return Message(
        _(
            "{queue}: its agent runs release {old}, which lacks the configs of {cells}. They "
            "would run on {release}, where {files} {n:differs|differ}, too: not the code of the "
            "cells before them. If you want that",
            **_of_lines(lines, made),
            files=", ".join(lines.other),
            n=len(lines.other),
        ),
        Command("push", ("--mixed",)),
    )


def _on_old_code(lines: NewLines, made: Release) -> Message:
    return Message(
        _(
            "{queue}: {cells} will run on release {old}, on which its agent stays, without what "
            "you changed in {files}. To use the new code",
            **_of_lines(lines, made),
            files=", ".join(lines.other),
        ),
        Command("drain", note=_("then launch")),
    )


def _of_lines(lines: NewLines, made: Release) -> dict[str, str]:
    return {
        "queue": lines.queue,
        "cells": ", ".join(lines.cells),
        "old": short(lines.release),
        "release": short(made.digest),
    }


def _not_taken(lines: NewLines, made: Release) -> Message:
    return Message(
        _(
            "{queue}: its agent stays on release {old}; it cannot switch to {release}, whose plan "
            "has other {parts}. {cells} will wait for a relaunch",
            **_of_lines(lines, made),
            parts=", ".join(lines.refused),
        ),
        Command("drain", note=_("then launch")),
    )


def _nowhere(site: Site, queue: str, lines: Sequence[str]) -> Message:
    return Message(
        _(
            "{file}: these lines cannot run, because neither a release nor {code} has their "
            "configs: {lines}. Add the files, or comment the lines out, then",
            file=site.project.on_tier.queue(queue),
            code=site.project.job.code,
            lines="; ".join(lines),
        ),
        Command("push"),
    )


def say_release(made: Release, *, is_new: bool) -> None:
    which = (
        mark("release {release} is new: {origin}")
        if is_new
        else mark("release {release} is already there: {origin}")
    )
    origin = _origin(made)
    show.say(Sentence(which, release=short(made.digest), origin=origin))


def check_queues(site: Site) -> None:
    """Raise InputError, before anything is sent, for queues that do not go on from the tier's."""
    if problems := diverged(site):
        raise InputError(problems)


def diverged(site: Site) -> list[Message]:
    """The queues that do not go on from the tier's, as far as it is known here, with the diff."""
    problems: list[Message] = []
    for name, local in site.project.queue_files.items():
        try:
            sync.check(local, site.tier.queue(name))
        except InputError as error:
            problems += error.messages
    return problems


def refuse_a_finished_run(project: Project) -> None:
    """Raise InputError for one: what was proven and torn down stays apart from what comes later."""
    if finished := said_of_a_finished_run(project):
        raise InputError(finished)


def said_of_a_finished_run(project: Project) -> Sentence | None:
    """None for a run that was not torn down."""
    teardown = receipt.read_teardown(project.results.teardown)
    if not (teardown and teardown.finished_at):
        return None
    return _(
        "run {run!r} was torn down; its results are in {folder}. Give the job another name, or "
        "move that folder away",
        run=project.plan.run,
        folder=project.results.root,
    )


def refuse_a_tier_out_of_sight(site: Site) -> None:
    """Raise InputError where all that ran before would run again, on an empty tier."""
    if site.is_tier_out_of_sight():
        raise InputError(
            _(
                "the run was launched here, but {tier} is missing. Mount or restore it. To start "
                "over without its contents, move {folder} away",
                tier=site.tier.root,
                folder=site.results.root,
            )
        )


def _origin(made: Release) -> str:
    code = made.code
    if code.commit is None:
        return _("the code has no git commit")
    which = (
        mark("commit {commit} with changes (kept as code.diff)")
        if code.is_dirty
        else mark("commit {commit}")
    )
    return Sentence(which, commit=code.commit[:10])
