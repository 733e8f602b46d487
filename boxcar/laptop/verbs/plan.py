"""`invoke plan`: the resolved plan as a person reads it. Spends nothing, and writes nothing."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxcar.laptop.common import show, units
from boxcar.laptop.common.headings import heading
from boxcar.laptop.fitness import space
from boxcar.laptop.places.open_site import SITES, open_site
from boxcar.laptop.project import data_of_job, dealt_queues, idle_end, launches, profile_choice
from boxcar.laptop.project.cells_at_once import cells_at_once, named_gpus, say_cells_at_once
from boxcar.laptop.project.checks import todos, tracker_logins
from boxcar.laptop.project.from_environment import credentials, resolve_secrets, targets
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.profiles import survival
from boxcar.laptop.project.queues.cell_cost import Expected, expected_time
from boxcar.laptop.release import code_files
from boxcar.laptop.release.code_files import Snapshot
from boxcar.laptop.release.left_out_files import LeftOut, find_left_out, not_shipped
from boxcar.laptop.run.budget import unpriced
from boxcar.laptop.run.rentals import prices_of_boxes
from boxcar.laptop.tryout import passes
from boxcar.laptop.verbs import listen, push, split
from boxcar.laptop.verbs.next_step import before_launch
from boxcar.shared import names
from boxcar.shared.cell import cell_line, duration, said, terms
from boxcar.shared.cell.said import Places
from boxcar.shared.disk.checked_copy import lack_of_room
from boxcar.shared.disk.mounts import disk_room
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.files import fetched_data
from boxcar.shared.files.plan import EACH_BOX, Artifact, Cell, Plan
from boxcar.shared.paths import DataPaths, ScratchPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark

if TYPE_CHECKING:
    from boxcar.laptop.project.project import Project


_MOST_LEFT_OUT = 5
# An agent reads a queue whole when it has changed.
LONG_QUEUE = 5000


@dataclass(frozen=True)
class Room:
    """What is free where something will lie. `free_inodes` is None where they are not counted."""

    place: str
    folder: str
    free_bytes: int
    free_inodes: int | None


def plan(project: Project, *, as_json: bool = False) -> int:
    """Show what would run, where and how; writes nothing.

    Returns 1 where a config would not travel, a disk of this machine is full, or lines that were
    pushed have been edited.
    """
    told = targets(project.job, os.environ)
    is_sending = any(one.endpoint for one in told)
    shipped = code_files.snapshot_of(project)
    staying = not_shipped(project.plan, shipped)
    stays = find_left_out(project.root / project.job.code, frozenset(shipped.names))
    size = expected_time(project.plan.cells, project.plan.boxes_of_files, split.measured(project))
    document = _document(project, shipped, stays, size, is_sending=is_sending)
    if as_json:
        show.json_document("plan", document)
    else:
        _show(document, project)
    refused: list[str | Message] = [
        *staying,
        *space.folders_without_room(_folders_here(project)),
        *_without_room_for_data(project, document.get("data", ())),
        *_diverged(project),
        *profile_choice.unknown(project.job, project.root),
    ]
    notes = [
        *todos.notes(project.job_path),
        *tracker_logins.notes(project.root / project.job.code, project.plan),
        *project.take_notes(),
        *_pools(project),
        *_dealt(project),
        *_long_queues(project.plan),
        *_uncounted(project),
    ]
    unheard: list[str | Message] = [
        *(one.warning for one in told if one.off),
        *listen.unheard(project, credentials(told)["webhooks"]),
    ]
    for sentence in [*unheard, *_missing_secrets(project.job), *notes, *refused]:
        show.say(sentence)
    show.say(_next(project, size, is_refused=bool(refused)))
    return 1 if refused else 0


def _without_room_for_data(
    project: Project, data: Sequence[dict[str, Any]]
) -> Iterator[str | Message]:
    """Of this machine, where the tier is here; of rented boxes `audit` says it."""
    here = open_site(project, show.say).folders_here([]) if data else {}
    for folder in here.values():
        store = DataPaths(folder.parent.parent)
        if not any(store.root.glob("*")) and (
            lack := lack_of_room(space.nearest_folder(folder), [one["size_bytes"] for one in data])
        ):
            yield _("data: {lack}", lack=lack)


def _pools(project: Project) -> Iterator[Sentence]:
    pools = project.plan.boxes_of_files.items()
    for file, boxes in pools:
        if file in project.plan.queues:
            continue
        if project.profile.is_slurm:
            yield _(
                "{file}: {boxes} share its cells, each in a Slurm job of its own that claims the "
                "next free one. If a job ends early, the others go on with its cells",
                file=file,
                boxes=", ".join(boxes),
            )
        else:
            yield _(
                "{file}: {boxes} share its cells; each box claims the next free one on the "
                "durable tier",
                file=file,
                boxes=", ".join(boxes),
            )


def _uncounted(project: Project) -> Iterator[Sentence]:
    boxes = [box.name for box in project.plan.boxes]
    if missing := unpriced(project.job.budget, prices_of_boxes(project), boxes):
        yield _(
            "budget: it does not count {boxes}, which {n:has|have} no price in its currency. Write "
            "one under `price:`",
            boxes=missing,
            n=missing.count(",") + 1,
        )


def _dealt(project: Project) -> Iterator[Sentence]:
    for file, queues in dealt_queues.pools_of_job(project.job, project.profile).items():
        yield _(
            "{file}: these boxes share no durable tier, so launch deals its cells out to {queues}. "
            "status and watch even out what only waits; while nobody looks, a box may end before "
            "the others",
            file=file,
            queues=", ".join(queues),
        )


def _long_queues(plan: Plan) -> Iterator[Sentence]:
    for queue, n in Counter(cell.queue for cell in plan.cells).items():
        if n > LONG_QUEUE:
            yield _(
                "queue {queue} has {n} cells. More than {most} work, but every change re-reads "
                "all lines, so the gaps between cells grow. Append in portions, or use several "
                "queues",
                queue=queue,
                n=n,
                most=LONG_QUEUE,
            )


def _next(project: Project, size: Expected, *, is_refused: bool) -> Message:
    """How much it is, and the command that brings the run on."""
    said = _(
        "{cells:,} {cells:cell|cells}, {boxes} {boxes:box|boxes}",
        cells=size.cells,
        boxes=size.boxes,
    )
    if size.seconds is not None:
        said = _(
            "{size}, about {time} (from earlier runs)", size=said, time=units.duration(size.seconds)
        )
    if is_refused:
        return Message(_("{size}. Fix the problems above, then", size=said), Command("plan"))
    return Message(_("{size}. Next", size=said), _next_command(project))


def _next_command(project: Project) -> Command:
    if launches.releases_of(project.results):
        return Command("status")
    site = open_site(project, show.say)
    return before_launch(project, needs_audit=site.needs_audit)


def first_command(plan: Plan) -> list[str]:
    """The first cell's command, filled, as its box will run it; the launcher's own flags apart."""
    cell = plan.cells[0]
    data_dir = Path(plan.box(plan.boxes_of_files[cell.queue][0]).data_dir)
    out = str(ScratchPaths(data_dir, plan.run).out(cell.name))
    # The release is not built yet, so nobody knows its digest.
    code = str(ScratchPaths(data_dir, plan.run).code("RELEASE"))
    data = str(ScratchPaths(data_dir, plan.run).data_of("RELEASE"))
    resume = said.resume_place(out, terms.terms_of_cell(plan, cell.name).resume)
    places = Places(out, code, resume, data=data)
    return list(said.say_cell(plan, cell, places).words)


def _diverged(project: Project) -> list[Message]:
    """As `push` and `launch` would refuse it; of boxes over ssh as they were last seen."""
    return push.diverged(open_site(project, show.say))


def _missing_secrets(job: Job) -> Sequence[Message]:
    """Said and not refused: nobody needs them to look at a plan."""
    try:
        resolve_secrets(job, os.environ)
    except InputError as error:
        return error.messages
    return ()


def _document(
    project: Project,
    shipped: Snapshot,
    stays: Sequence[LeftOut],
    size: Expected,
    *,
    is_sending: bool,
) -> dict[str, Any]:
    plan = project.plan
    return {
        "run": plan.run,
        "profile": plan.profile,
        "project": str(project.root),
        "durable": str(project.on_tier.root),
        "durable_scope": plan.durable_scope,
        "survives": survival.survivors(plan, is_here=bool(_folders_here(project))),
        "results": str(project.results.root),
        "code": {
            "commit": shipped.code.commit,
            "is_dirty": shipped.code.is_dirty,
            "files": len(shipped.files),
            "left_out": stays,
        },
        **({"data": listed} if (listed := _data(project)) else {}),
        **({"data_urls": urls} if (urls := _data_urls(plan)) else {}),
        "webhooks": "on" if is_sending else "off",
        "launcher": plan.launcher,
        "first_command": first_command(plan),
        "queues": [
            {"queue": name, "box": box, "file": str(project.queue_files[names.file_of(name)])}
            for name, box in plan.queues.items()
        ],
        "cells": plan.cells,
        "expected": size,
        "artifacts": plan.artifacts,
        "room": list(_rooms(project)),
        "cells_at_once": [*say_cells_at_once(plan, project.job.resources), *_memory(project)],
        "candidates": profile_choice.resolve_candidates(project.job, project.root, SITES),
        "ends": {
            "verb": project.profile.meter_stop.verb,
            "preserves": list(project.profile.meter_stop.preserves),
            "is_reversible": project.profile.meter_stop.is_reversible,
        },
    }


def _memory(project: Project) -> Iterator[Sentence]:
    """Of all that run side by side, by what smoke has seen."""
    plan, wish = project.plan, project.job.resources.gpu
    if not (plan.gpus_per_cell or plan.slots) or not (seen := passes.measured(project)):
        return
    known = wish.count.least if wish and wish.count else len(named_gpus(plan) or ())
    cells = cells_at_once(plan, known) or 1
    if seen.memory_bytes:
        yield _(
            "{n} x {size} of RAM, as smoke measured it; audit compares it with the boxes",
            n=cells,
            size=units.size(seen.memory_bytes),
        )


def _rooms(project: Project) -> Iterator[Room]:
    """Of this machine only: what other boxes have left, `audit` asks them."""
    for place, folder in _folders_here(project).items():
        yield _room(place, folder)


def _folders_here(project: Project) -> dict[str, Path]:
    site = open_site(project, show.say)
    return site.folders_here([box.name for box in project.plan.boxes])


def _room(place: str, folder: Path) -> Room:
    room = disk_room(space.nearest_folder(folder))
    return Room(place, str(folder), room.free_bytes, room.free_inodes)


def _show(document: dict[str, Any], project: Project) -> None:
    plan, code = project.plan, document["code"]
    facts = [
        ("run", plan.run),
        ("profile", plan.profile),
        ("code", _("{n} {n:file|files}, {commit}", n=code["files"], commit=_commit(code))),
        *(("left out", text) for text in _left_out(code["left_out"])),
        ("durable tier", _tier(project)),
        *((_left_after(death), what) for death, what in document["survives"].items()),
        ("at the end", _ending(project)),
        *(
            ("when idle", text)
            for text in [idle_end.sentence_of_idle_end(project.job, project.profile)]
            if text
        ),
        ("results", document["results"]),
        ("webhooks", _(mark("on") if document["webhooks"] == "on" else mark("off"))),
        ("artifacts", _artifacts(plan.artifacts)),
        ("launcher", plan.launcher),
        *(("cells at once", text) for text in document["cells_at_once"]),
        ("training Python", plan.training_python),
        *(("data", _said_data(one)) for one in document.get("data", ())),
        *(("data", _said_url(one)) for one in document.get("data_urls", ())),
        *(("set-up", text) for text in _set_up(plan)),
        ("first command", shlex.join(document["first_command"])),
    ]
    named = [(heading(what), value) for what, value in facts]
    show.table("the run", ("what", "value"), named)
    queues = [tuple(row.values()) for row in document["queues"]]
    show.table("queues", ("queue", "box", "file"), queues)
    _show_cells(plan)
    rooms = [
        (room.place, room.folder, units.size(room.free_bytes), _counted(room.free_inodes))
        for room in document["room"]
    ]
    if rooms:
        show.table("free space", ("place", "folder", "free", "free inodes"), rooms)
    else:
        show.say(Message(_("To see the hardware and free space of each box"), Command("audit")))
    if chosen := profile_choice.rows(document["candidates"]):
        show.table("candidates", ("profile", "taken", "why"), chosen)


def _data(project: Project) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "folder": str(one.source),
            "files": len(one.files),
            "size_bytes": one.size_bytes,
        }
        for one in data_of_job.list_data(project.root, project.job)
    ]


def _said_data(one: dict[str, Any]) -> Sentence:
    return _(
        "{name}: {n} {n:file|files}, {size}, from {folder}",
        name=one["name"],
        n=one["files"],
        size=units.size(one["size_bytes"]),
        folder=one["folder"],
    )


def _data_urls(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "url": fetched_data.url_of(one),
            "file": None if one.unpack else fetched_data.file_name(one),
            "sha256": one.sha256,
        }
        for one in plan.data_urls
    ]


def _said_url(one: dict[str, Any]) -> Sentence:
    if one["file"] is None:
        return _("{name}: what is in {url}, fetched by each box", name=one["name"], url=one["url"])
    return _(
        "{name}/{file}: from {url}, fetched by each box",
        name=one["name"],
        file=one["file"],
        url=one["url"],
    )


def _set_up(plan: Plan) -> Iterator[Sentence]:
    files = (plan.requirements if plan.install else None, plan.setup)
    if found := [name for name in files if name]:
        yield _("{names}, once on each box before its first cell", names=", ".join(found))


def _commit(code: dict[str, Any]) -> Sentence:
    if not code["commit"]:
        return _("no git commit")
    which = mark("commit {commit}, with changes") if code["is_dirty"] else mark("commit {commit}")
    return Sentence(which, commit=code["commit"][:10])


_DEATHS = {
    "a box": mark("a box"),
    "the durable tier": mark("the durable tier"),
    "this machine": mark("this machine"),
}


def _left_after(death: str) -> Sentence:
    return _("if {death} is lost", death=Sentence(_DEATHS[death]))


def _artifacts(artifacts: Sequence[Artifact]) -> str:
    names = ", ".join(artifact.path for artifact in artifacts)
    return names or _("none: a cell is done when it exits with 0, and its log is the result")


def _counted(number: int | None) -> str | None:
    return None if number is None else f"{number:,}"


def _left_out(stays: Sequence[LeftOut]) -> Iterator[str]:
    """What ignore rules keep from being shipped, the largest first."""
    for item in stays[:_MOST_LEFT_OUT]:
        which = (
            mark("{name} ({size} or more), ignored by {rule}")
            if item.is_more
            else mark("{name} ({size}), ignored by {rule}")
        )
        size = units.size(item.size_bytes)
        yield Sentence(which, name=item.name, size=size, rule=item.rule)
    if len(stays) > _MOST_LEFT_OUT:
        yield _("and {n} smaller", n=len(stays) - _MOST_LEFT_OUT)


def _show_cells(plan: Plan) -> None:
    """What a line says beyond its task has a column where a line says any."""
    columns = ["queue", "index", "cell", "task", "epochs", "ranks"]
    rows = [[c.queue, c.index, c.name, c.task, c.epochs, _ranks(plan, c)] for c in plan.cells]
    said = [_said(plan, cell) for cell in plan.cells]
    if any(said):
        columns.append("overrides")
        rows = [[*row, words] for row, words in zip(rows, said, strict=True)]
    show.table("cells", columns, rows)


def _ranks(plan: Plan, cell: Cell) -> int | str:
    if terms.terms_of_cell(plan, cell.name, cell.own).launcher == "python":
        return _("one process")
    ranks = cell.nproc or _("all GPUs, else 1")
    return f"{cell.nodes} x {ranks}" if cell.nodes > 1 else ranks


def _said(plan: Plan, cell: Cell) -> str:
    limit_s = terms.terms_of_cell(plan, cell.name, cell.own).time_s
    after = [f"after={','.join(cell.own.after)}"] if cell.own.after else []
    limit = [f"time={duration.spell_duration(limit_s)}"] if limit_s else []
    return shlex.join([*after, *limit, *cell_line.words_of_line(cell)])


def _tier(project: Project) -> str:
    folder = str(project.on_tier.root)
    if project.plan.durable_scope == EACH_BOX:
        return _(
            "{folder} on each box; results are safe only once they are pulled here",
            folder=folder,
        )
    return folder


def _ending(project: Project) -> str:
    verb = project.profile.meter_stop
    kept = ", ".join(verb.preserves) or _("nothing")
    which = (
        mark("{verb} (reversible); kept: {kept}")
        if verb.is_reversible
        else mark("{verb} (permanent); kept: {kept}")
    )
    return Sentence(which, verb=verb.verb, kept=kept)
