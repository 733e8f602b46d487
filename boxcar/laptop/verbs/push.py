"""Put the release and the queue files on the durable tier. What lies there is never overwritten.

A release is sent under an unfinished name, checked on the box, and then takes its digest as its
name: the same inputs change nothing, and a queue that runs keeps the release it was started with.
A tier that boxes share gets it once; boxes with a tier of their own are served side by side, and
one that fails holds up no other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.hosts import folders
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import profile_choice
from boxcar.laptop.project.project import Project
from boxcar.laptop.project.queues import sync
from boxcar.laptop.project.queues.sync import Ahead, Append, CommentedThere, CommentOut
from boxcar.laptop.release.build import build
from boxcar.laptop.results.lend import lend_files
from boxcar.laptop.run import mixed_code, relaunch
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.mixed_code import NewLines, ToPush
from boxcar.laptop.run.view import RunView
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, digest
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import Command, DamagedError, InputError, Message, NoRoomError, message_of
from boxcar.shared.files import queue_line, receipt
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.release import Release
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.wire import run_asks

CHECK_TIMEOUT_S = 600.0  # a slow network disk reads the whole release for it


def push(project: Project, *, is_mixed: bool = False, as_json: bool = False) -> int:
    """Build the release, send it if it is not there yet, and append the queues' new lines.

    `is_mixed`: also where new lines run other code than the cells before them, because the agent at
    work keeps its release. 1 where a line cannot run before a person has done something.
    """
    with open_site(project, show.say) as site:
        refuse_a_finished_run(project)
        refuse_a_tier_out_of_sight(site)
        profile_choice.remember_profile(
            project.results, project.profile.name, profile_choice.PUSHED
        )
        with show.waiting(_("asking the boxes")):
            site.refresh()
        check_queues(site)
        groups = by_tier(site, list(project.queue_files))
        with show.waiting(_("building the release")):
            built = build(project, show.say)
        view = look_at_run(site, timestamp.utc_now())
        problems = say_mixed(site, view, built[0], is_mixed=is_mixed)
        with show.progress(_("push")) as bar:
            sent, unserved = side_by_side.each_or_why(
                groups, lambda box: serve(site, box, built, bar)
            )
        if sent:
            say_release(built[0], is_new=any(sent.values()))
        with show.progress(_("push")) as bar:
            queues, unsent = side_by_side.each_or_why(
                [queue for box in sent for queue in groups[box]],
                lambda name: send_queue(site, name, bar),
            )
        if as_json:
            errors = (unserved | unsent).items()
            told = [*(message_of(error).under(name) for name, error in errors), *problems]
            _show_document(built[0], any(sent.values()), queues, told)
        side_by_side.raise_all(unserved | unsent)
        for later in relaunch.retried_later(view, queues):
            show.say(later)
        return 1 if problems else 0


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
    problems = [_not_taken(lines, made) for lines in found if lines.refused]
    lacking = mixed_code.without_config(site.tier, site.plan.queues, made)
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


def by_tier(site: Site, queues: Sequence[str]) -> dict[str, list[str]]:
    """The queues on each durable tier, by the box that the tier is reached by."""
    boxes = list(dict.fromkeys(site.plan.queues[queue] for queue in queues))
    reached = site.reach_tiers(boxes)
    if site.plan.durable_scope != EACH_BOX:
        return {box: list(queues) for box in reached}
    return {box: [name for name in queues if site.plan.queues[name] == box] for box in reached}


def say_release(made: Release, *, is_new: bool) -> None:
    which = (
        mark("release {release} is new: {origin}")
        if is_new
        else mark("release {release} is already there: {origin}")
    )
    origin = _origin(made)
    show.say(Sentence(which, release=short(made.digest), origin=origin))


def serve(site: Site, box: str, built: tuple[Release, Path], bar: Progress) -> bool:
    """Have the release on the tier of this box; whether it was sent just now."""
    made, folder = built
    found = site.ask(box, run_asks.FindRelease(made.digest), timeout_s=CHECK_TIMEOUT_S)
    if not found.is_there:
        _send(site, box, folder, made, bar)
    _refuse(site, box, made, found.problems)
    # Before any line: an agent that meets a line without its release would let it wait.
    if not found.is_newest:
        site.ask(box, run_asks.PointTo(made.digest))
    return not found.is_there


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
    teardown = receipt.read_teardown(project.results.teardown)
    if teardown and teardown.finished_at:
        raise InputError(
            _(
                "run {run!r} was torn down; its results are in {folder}. Give the job another "
                "name, or move that folder away",
                run=project.plan.run,
                folder=project.results.root,
            )
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


def _send(site: Site, box: str, folder: Path, made: Release, bar: Progress) -> None:
    """Everything under an unfinished name; the box checks it, and then gives it its own.

    What a push that broke off has left there is gone on with.
    """
    sizes_bytes = tuple(file.size_bytes for file in made.files)
    prepare = run_asks.Prepare(made.digest, sizes_bytes, is_mounted=site.has_mounted_tier)
    try:
        prepared = site.ask(box, prepare)
    except NoRoomError as error:
        raise NoRoomError(
            _("{error}. Free some space there, then run the same command again", error=error)
        ) from error
    target = site.project.on_tier.release(made.digest)
    unfinished = target.with_name(prepared.kept) if prepared.kept else atomic.temporary_name(target)
    there = site.folder_on(box, str(unfinished))
    install = run_asks.Install(made.digest, unfinished.name)
    part = bar.part(sum(sizes_bytes), box)
    for bases in (prepared.bases, ()):
        folders.send_folder(folder, there, on_bytes=part.at, bases=bases, has_own_connection=False)
        part.doing = _("checked by the box")
        try:
            site.ask(box, install, timeout_s=CHECK_TIMEOUT_S)
            break
        except DamagedError:
            # The box has removed it. Should a base be at fault, the second time nothing is copied.
            if not bases:
                raise
    part.end()


def _refuse(site: Site, box: str, made: Release, problems: Sequence[str]) -> None:
    if problems:
        raise DamagedError(
            _(
                "{box}: {digest} changed since it was pushed: {problems}. It was left as it is. "
                "If no agent runs from it, move the folder away and push again.",
                box=box,
                digest=site.project.on_tier.release(made.digest),
                problems="; ".join(problems[:5]),
            )
        )


def send_queue(site: Site, name: str, bar: Progress) -> str:
    """Append what the local queue file has more; what was done.

    By the queue's own box, or by another one of a shared tier where that one does not answer.
    """
    local, shared = site.project.queue_files[name], site.tier.queue(name)
    others = (box.name for box in site.plan.boxes)
    box = site.reach_tiers(list(dict.fromkeys([site.plan.queues[name], *others])))[0]
    there = sync.read_tier_queue(shared)
    change = sync.decide(local, shared, there)
    if site.has_lost_its_tier(box):
        # What we know of it is another box's, which had this name before.
        there, change = None, sync.anew(local, there)
    elif site.plan.durable_scope == EACH_BOX:
        # Before the lines: a line that comes after a result which was lent needs its files.
        for text in lend_files(site, name, bar):
            show.say(text)
    if isinstance(change, CommentedThere):
        _say_commented_there(name, local, change)
        change = change.change
    if isinstance(change, Append):
        expected = None if there is None else (len(there), digest.of_bytes(there))
        site.ask(box, run_asks.Append(name, expected, change.data))
        _say_appended(site, name, change.data)
        return "appended"
    if isinstance(change, CommentOut):
        read = (len(there or b""), digest.of_bytes(there or b""))
        site.ask(box, run_asks.CommentOut(name, read, change.data))
        for line in change.lines:
            show.say(_("{queue}: commented out on the tier: {line}", queue=name, line=line))
        before = (there or b"").count(b"\n")
        _say_appended(site, name, b"".join(change.data.splitlines(keepends=True)[before:]))
        return "commented out"
    if isinstance(change, Ahead):
        show.say(
            _(
                "{queue}: {n} {n:line was|lines were} appended on the tier; {file} lacks "
                "{n:it|them}",
                queue=name,
                n=len(change.lines),
                file=local,
            )
        )
        return "ahead"
    return "same"


def _say_appended(site: Site, name: str, data: bytes) -> None:
    """Comments are sent with the lines of cells, and are not counted."""
    if n := len(queue_line.parse_queue(data).cells):
        file = site.project.on_tier.queue(name)
        show.say(_("{queue}: {n} {n:line|lines} appended to {file}", queue=name, n=n, file=file))


def _say_commented_there(name: str, local: Path, found: CommentedThere) -> None:
    for number, line in found.lines:
        show.say(
            _(
                "{queue}: line {number} is commented out on the tier, but not here: {line}",
                queue=name,
                number=number,
                line=line,
            )
        )
    command = sync.to_comment_out(local, found.lines)
    show.say(
        _(
            "{queue}: lines commented out on the tier are skipped. To comment them out here, too: "
            "{command}. To run such a cell after that, append a new line",
            queue=name,
            command=command,
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
