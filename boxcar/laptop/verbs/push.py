"""Put the release and the queue files on the durable tier. What lies there is never overwritten.

A release is sent under an unfinished name, checked on the box, and then takes its digest as its
name: the same inputs change nothing, and a queue that runs keeps the release it was started with.
A tier that boxes share gets it once.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxcar.laptop.common import show
from boxcar.laptop.project.project import Project
from boxcar.laptop.queues import sync
from boxcar.laptop.queues.sync import Ahead, Append
from boxcar.laptop.release import build as builder
from boxcar.laptop.transfer import folders
from boxcar.shared.disk import atomic, digest
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import DamagedError, InputError, NoRoomError
from boxcar.shared.files import receipt
from boxcar.shared.files.plan import SHARED
from boxcar.shared.files.release import Release

CHECK_TIMEOUT_S = 600.0  # a slow network disk reads the whole release for it


def push(project: Project, *, as_json: bool = False) -> int:
    """Build the release, send it if it is not there yet, and append the queues' new lines."""
    refuse_a_finished_run(project)
    project.boxes.refresh()
    check_queues(project)
    boxes = [box.name for box in project.plan.boxes]
    made, is_new = send_release(project, builder.build(project), boxes)
    queues = send_queues(project, list(project.queue_files))
    if as_json:
        show.json_document(
            {"release": made.digest, "is_new": is_new, "code": made.code, "queues": queues}
        )
    return 0


def send_release(
    project: Project, built: tuple[Release, Path], boxes: Sequence[str]
) -> tuple[Release, bool]:
    """What was built as it lies on the tiers of these boxes, and whether it was sent just now."""
    made, folder = built
    is_new = False
    for box in project.boxes.tiers(boxes):
        found = _ask_about(project, box, made)
        if not found["is_there"]:
            _send(project, box, folder, made)
            is_new = True
        _refuse(project, box, made, found["problems"])
    state = "is new" if is_new else "was there already"
    show.say(f"release {short(made.digest)} {state}: {_origin(made)}")
    return made, is_new


def check_queues(project: Project) -> None:
    """Raise InputError, before anything is sent, for queues that do not go on from the tier's."""
    problems: list[str] = []
    for name, local in project.queue_files.items():
        try:
            sync.check(local, project.durable.queue(name))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def send_queues(project: Project, queues: Sequence[str]) -> dict[str, str]:
    """Append what the local queue files have more; what was done, by queue."""
    return {name: _sync(project, name) for name in queues}


def refuse_a_finished_run(project: Project) -> None:
    """Raise InputError for one: what was proven and torn down stays apart from what comes later."""
    teardown = receipt.read_teardown(project.results.teardown)
    if teardown and teardown.finished_at:
        raise InputError(
            f"the run {project.plan.run!r} was torn down, and its results are kept in "
            f"{project.results.root}. Give the job another name, or move that folder away"
        )


def _ask_about(project: Project, box: str, made: Release) -> dict[str, Any]:
    found: dict[str, Any] = project.boxes.ask(
        box, "release", timeout_s=CHECK_TIMEOUT_S, digest=made.digest
    )
    return found


def _send(project: Project, box: str, folder: Path, made: Release) -> None:
    """Everything under an unfinished name; the box checks it, and then gives it its own.

    What a push that broke off has left there is gone on with.
    """
    sizes_bytes = [file.size_bytes for file in made.files]
    # A shared tier is a mount: made by us, it would be a folder on the box's own disk.
    is_mounted = not project.is_local and project.plan.durable_scope == SHARED
    try:
        kept = project.boxes.ask(
            box, "prepare", digest=made.digest, sizes_bytes=sizes_bytes, is_mounted=is_mounted
        )["kept"]
    except NoRoomError as error:
        raise NoRoomError(f"{error}. Make room there, and type the same command again") from error
    target = project.on_tier.release(made.digest)
    unfinished = target.with_name(kept) if kept else atomic.temporary_name(target)
    with show.progress() as bar:
        task = bar.add_task(f"release to {box}, MB", total=sum(sizes_bytes) / 1e6)
        folders.send_folder(
            folder,
            project.boxes.place(box, str(unfinished)),
            on_bytes=lambda sent_bytes: bar.update(task, completed=sent_bytes / 1e6),
        )
    project.boxes.ask(
        box,
        "install",
        timeout_s=CHECK_TIMEOUT_S,
        digest=made.digest,
        unfinished=unfinished.name,
    )


def _refuse(project: Project, box: str, made: Release, problems: Sequence[str]) -> None:
    if problems:
        raise DamagedError(
            f"{box}: {project.on_tier.release(made.digest)} is not as it was pushed: "
            f"{'; '.join(problems[:5])}. It is left as it is; move the folder away if no agent "
            "runs from it, and push again."
        )


def _sync(project: Project, name: str) -> str:
    local, shared = project.queue_files[name], project.durable.queue(name)
    box = project.plan.queues[name]
    there = sync.read(shared)
    change = sync.decide(local, shared, there)
    if isinstance(change, Append):
        project.boxes.ask(
            box,
            "append",
            queue=name,
            expected=None if there is None else [len(there), digest.of_bytes(there)],
            data=base64.b64encode(change.data).decode(),
        )
        lines = change.data.count(b"\n")
        show.say(f"{name}: {lines} line(s) appended to {project.on_tier.queue(name)}")
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
