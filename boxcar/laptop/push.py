"""Put the release and the queue files on the durable tier. What lies there is never overwritten.

A release is sent under an unfinished name, checked, and then takes its digest as its name: the same
inputs change nothing, and a queue that runs keeps the release it was started with.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from boxcar.formats import copy, durable, manifest, release
from boxcar.formats.digest import short
from boxcar.formats.errors import DamagedError, InputError
from boxcar.formats.release import Release
from boxcar.laptop import queue_sync, show, transport
from boxcar.laptop import release as builder
from boxcar.laptop.project import Project
from boxcar.laptop.queue_sync import Ahead, Append
from boxcar.laptop.results_folder import read_teardown


def push(project: Project, *, as_json: bool = False) -> int:
    """Build the release, send it if it is not there yet, and append the queues' new lines."""
    check_queues(project)
    made, is_new = send_release(project)
    queues = send_queues(project)
    if as_json:
        show.json_document(
            {"release": made.digest, "is_new": is_new, "code": made.code, "queues": queues}
        )
    return 0


def send_release(project: Project) -> tuple[Release, bool]:
    """The release as it lies on the durable tier, and whether it was sent just now."""
    _refuse_a_finished_run(project)
    made, folder = builder.build(project)
    target = project.durable.release(made.digest)
    is_new = not target.is_dir()
    if is_new:
        _send(folder, made, target)
    _refuse(target, release.check(target))
    state = "is new" if is_new else "was there already"
    show.say(f"release {short(made.digest)} {state}: {_origin(made)}")
    return made, is_new


def check_queues(project: Project) -> None:
    """Raise InputError, before anything is sent, for queues that do not go on from the tier's."""
    problems: list[str] = []
    for name, local in project.queue_files.items():
        try:
            queue_sync.check(local, project.durable.queue(name))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def send_queues(project: Project) -> dict[str, str]:
    """Append what the local queue files have more; what was done, by queue."""
    return {
        name: _sync(name, local, project.durable.queue(name))
        for name, local in project.queue_files.items()
    }


def _refuse_a_finished_run(project: Project) -> None:
    """What was proven and torn down under a name stays apart from what comes after it."""
    teardown = read_teardown(project.results)
    if teardown and teardown.finished_at:
        raise InputError(
            f"the run {project.plan.run!r} was torn down, and its results are kept in "
            f"{project.results.root}. Give the job another name, or move that folder away"
        )


def _send(folder: Path, made: Release, target: Path) -> None:
    durable.make_folder(target.parent)
    for left in target.parent.iterdir():
        if durable.is_temporary(left.name):
            shutil.rmtree(left)
    copy.check_room(target.parent, (file.size_bytes for file in made.files))
    unfinished = durable.temporary_name(target)
    transport.send_folder(folder, unfinished)
    for path in sorted(unfinished.rglob("*")):
        durable.sync_file(path)
    _refuse(unfinished, manifest.compare(unfinished, made.files))
    unfinished.rename(target)
    durable.sync_folder(target.parent)


def _refuse(target: Path, differences: list[manifest.Difference]) -> None:
    if differences:
        told = "; ".join(f"{found.path} {found.problem}" for found in differences[:5])
        raise DamagedError(
            f"{target}: is not as it was pushed: {told}. It is left as it is; move the folder away "
            "if no agent runs from it, and push again."
        )


def _sync(name: str, local: Path, shared: Path) -> str:
    change = queue_sync.sync(local, shared)
    if isinstance(change, Append):
        lines = change.data.count(b"\n")
        show.say(f"{name}: {lines} line(s) appended to {shared}")
        return "appended"
    if isinstance(change, Ahead):
        show.say(
            f"{name}: {len(change.lines)} line(s) were appended on the tier; {local} lacks them"
        )
        return "ahead"
    return "same"


def _origin(made: Release) -> str:
    code = made.code
    if code.commit is None:
        return "the code is in no git commit"
    return f"commit {code.commit[:10]}" + (
        " with changes (kept as code.diff)" if code.is_dirty else ""
    )
