"""`invoke grid`: a line for each combination of values, spread over the queue files by cost.

Shows the lines; with `is_to_write` they are appended to the local files, all of them or none. A
cell that some queue has is never written again, whatever its line is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.project import launches, queue_files
from boxcar.laptop.project.checks import bare_flags
from boxcar.laptop.project.grids import cell_configs, grid_lines
from boxcar.laptop.project.grids.grid_lines import Asked, LeftOut
from boxcar.laptop.project.project import Project
from boxcar.laptop.project.queue_files import QueueFile
from boxcar.laptop.project.queues import rewrite
from boxcar.laptop.verbs import split
from boxcar.shared.cell import cell_line
from boxcar.shared.errors import Command, Message, some
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _


@dataclass(frozen=True)
class GridCell:
    """One cell that no queue had: the line that says it, and its config where it gets one."""

    cell: str
    queue: str
    line: str
    config: str | None


def grid(
    project: Project, asked: Asked, *, is_to_write: bool = False, as_json: bool = False
) -> int:
    """Raises InputError, before anything is written, and OSError."""
    queues = queue_files.queue_files_of_job(project.root, project.job)
    chosen = grid_lines.chosen(queues, asked.queues)
    cells, configs = grid_lines.cells(project, asked)
    known = grid_lines.known_lines_of_queues(queues)
    new, left_out = grid_lines.divide_lines(
        cells, known, grid_lines.sayings_of_lines(project, configs)
    )
    tier = open_site(project, show.say).tier
    places = grid_lines.queues_of_cells(project, chosen, new, split.measured(project), tier)
    after = {
        queue.name: rewrite.appended(
            rewrite.content(queue.path),
            [cell_line.line_of(cell) for cell in new if places[cell.name] == queue.name],
        )
        for queue in queues
        if queue in chosen or not queue.path.exists()  # which `plan` would refuse
    }
    grid_lines.refuse_what_plan_refuses(project, queues, after, configs)
    grid_lines.refuse_what_push_refuses(tier, queues, after)
    if is_to_write:
        _write_configs(project.root / project.job.code, configs)
    if is_to_write and new:
        _write_lines(project, queues, after)
    paths = {Path(path).stem: path for path in configs}
    shown = [
        GridCell(cell.name, places[cell.name], cell_line.line_of(cell), paths.get(cell.name))
        for cell in new
    ]
    _report(shown, left_out, is_written=is_to_write and bool(new), as_json=as_json)
    code = project.root / project.job.code
    for note in bare_flags.notes(code, project.plan, new, before="--set="):
        show.say(note)
    _say_next(project, shown, is_to_write)
    return 0


# --- what is written


def _write_configs(code: Path, configs: Mapping[str, bytes]) -> None:
    """Before the lines that name them. Killed in between, the same command finishes it."""
    if written := cell_configs.write_configs(code, configs):
        show.say(_("{n} {n:config|configs} written", n=written))


def _write_lines(project: Project, queues: Sequence[QueueFile], after: Mapping[str, bytes]) -> None:
    files = {queue.path.resolve(): after[queue.name] for queue in queues if queue.name in after}
    changed = {
        path: data for path, data in files.items() if not path.exists() or path.read_bytes() != data
    }
    if changed:
        rewrite.write_queue(project.root, changed)


# --- what is shown


def _report(
    cells: Sequence[GridCell], left_out: Sequence[LeftOut], *, is_written: bool, as_json: bool
) -> None:
    if as_json:
        show.json_document("grid", {"is_written": is_written, "cells": cells, "left_out": left_out})
    elif cells:
        rows = [(cell.cell, cell.queue, cell.line) for cell in cells]
        show.table(_("grid: {n} new {n:cell|cells}", n=len(cells)), ("cell", "queue", "line"), rows)
    there = [one for one in left_out if not one.is_dropped]
    dropped = [one for one in left_out if one.is_dropped]
    if there:
        named = some((f"{one.cell} ({one.at})" for one in there), 1)
        show.say(
            _(
                "{n} {n:cell|cells} skipped, already in the queues: {first}",
                n=len(there),
                first=named,
            )
        )
    for one in dropped:
        show.say(
            _(
                "{cell} skipped: commented out at {at}; to run it, append the line",
                cell=one.cell,
                at=one.at,
            )
        )


def _say_next(project: Project, cells: Sequence[GridCell], is_to_write: bool) -> None:
    if not cells:
        show.say(_("no new cells; the queue files are unchanged"))
    elif not is_to_write:
        show.say(_("nothing was written; add --write to append the lines"))
    else:
        was_launched = bool(launches.profiles_of(project.results))
        command = Command("launch" if was_launched else "plan")
        show.say(Message(_("{n} {n:line|lines} appended. Next", n=len(cells)), command))
