"""`invoke grid`: a line for each combination of values, spread over the queue files by cost.

Shows the lines; with `is_to_write` they are appended to the local files, all of them or none. A
cell that some queue has is never written again, whatever its line is called.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.common.near import no_such
from boxcar.laptop.project import cell_configs, grid_lines, launch_record, queue_files, resolve
from boxcar.laptop.project.config_files import ConfigFiles
from boxcar.laptop.project.grid_lines import Grid, Known, LeftOut
from boxcar.laptop.project.project import Project
from boxcar.laptop.project.queue_files import QueueFile
from boxcar.laptop.queues import cell_cost, longest_first, rewrite, sync
from boxcar.laptop.sites.open_site import find_site
from boxcar.laptop.verbs import split
from boxcar.shared.cell import line_spelling, placeholders, said, saying
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import NO_CONFIG, NO_TASK
from boxcar.shared.cell.spelling import config_path
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import journal, queue_line
from boxcar.shared.files.plan import Cell
from boxcar.shared.message import Command, Message, counted
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Asked:
    """What was typed. `words` are keys with their values, and Boxcar's own words."""

    cfg: str
    task: str = ""
    epochs: int | None = None
    words: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    configs: str = ""


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
    queues = queue_files.of_job(project.root, project.job)
    chosen = _chosen(queues, asked.queues)
    cells = grid_lines.lines(_grid(project, asked))
    configs = _configs(project, asked, cells)
    code = project.root / project.job.code
    if configs:
        pairs = zip(cells, configs, strict=True)
        cells = [grid_lines.with_config(cell, path) for cell, path in pairs]
    new, left_out = grid_lines.divided(cells, _known(queues), _sayings(project, configs))
    homes = _homes(project, chosen, new)
    after = {
        queue.name: rewrite.appended(
            rewrite.content(queue.path),
            [line_spelling.of(cell) for cell in new if homes[cell.name] == queue.name],
        )
        for queue in queues
        if queue in chosen or not queue.path.exists()  # which `plan` would refuse
    }
    _refuse_what_plan_refuses(project, queues, after, configs)
    _refuse_what_push_refuses(project, queues, after)
    if is_to_write:
        _write_configs(code, configs)
    if is_to_write and new:
        _write_lines(project, queues, after)
    paths = {Path(path).stem: path for path in configs}
    shown = [
        GridCell(cell.name, homes[cell.name], line_spelling.of(cell), paths.get(cell.name))
        for cell in new
    ]
    _report(shown, left_out, is_written=is_to_write and bool(new), as_json=as_json)
    _say_next(project, shown, is_to_write)
    return 0


# --- what was asked for


def _grid(project: Project, asked: Asked) -> Grid:
    if "=" in asked.cfg:
        raise InputError(
            f"the first word is the config of all cells, and {asked.cfg!r} is none: write - where "
            "the script takes no config. No file was changed"
        )
    code = project.root / project.job.code
    if asked.cfg != NO_CONFIG and not ConfigFiles(code).find(config_path(asked.cfg)):
        near = queue_files.nearest_file(code / asked.cfg)
        raise InputError(f"there is no config {asked.cfg!r} in {code}{near}. No file was changed")
    task = asked.task or NO_TASK
    if task == NO_TASK and placeholders.takes(project.plan.command, "task"):
        raise InputError("--task is missing, and the command takes {task}. No file was changed")
    return Grid(asked.cfg, task, asked.epochs, asked.words)


def _chosen(queues: Sequence[QueueFile], names: Sequence[str]) -> list[QueueFile]:
    """Those that were named, by the queue's name or its file; all where none was."""
    by_name = {known: queue for queue in queues for known in (queue.file, queue.name)}
    problems = [
        no_such(name, [queue.file for queue in queues], what="queue", of="the job")
        for name in names
        if name not in by_name
    ]
    if problems:
        raise InputError(problems)
    picked = [by_name[name].name for name in names] or [queue.name for queue in queues]
    return [queue for queue in queues if queue.name in picked]


def _configs(project: Project, asked: Asked, cells: Sequence[CellLine]) -> dict[str, bytes]:
    """The file of each cell, by its path below the code folder; none without --configs."""
    if not asked.configs:
        return {}
    if asked.cfg == NO_CONFIG:
        raise InputError("--configs needs a config as the base, and found -. No file was changed")
    into = cell_configs.folder(asked.configs)
    code = project.root / project.job.code
    return cell_configs.files(code, config_path(asked.cfg), into, cells)


# --- what is there


def _known(queues: Sequence[QueueFile]) -> list[Known]:
    """The lines of all queues, and those with a # before them."""
    found = [Known(line, queue.at(line)) for queue, line in queue_files.lines(queues)]
    for queue in queues:
        dropped = queue_line.commented_out(rewrite.content(queue.path))
        found += [Known(line, queue.at(line), is_dropped=True) for line in dropped]
    return found


def _sayings(project: Project, configs: Mapping[str, bytes]) -> Callable[[CellLine], str]:
    """A line's saying, with its config as it is here or as it will be."""
    code = project.root / project.job.code
    known = {path: digest.of_bytes(data) for path, data in configs.items()}

    def config_sha256(cfg: str) -> str:
        if cfg not in known:
            path = code / cfg
            known[cfg] = digest.of_file(path) if path.is_file() else ""
        return known[cfg]

    def of_line(line: CellLine) -> str:
        sha256 = config_sha256(line.cfg) if line.has_config else None
        return saying.of(project.plan, line, sha256)

    return of_line


# --- which queue gets which cell


def _homes(
    project: Project, chosen: Sequence[QueueFile], new: Sequence[CellLine]
) -> dict[str, str]:
    """The queue of each new cell: the longest first, to where it ends earliest."""
    cells = [_cell(project, line) for line in new]
    every, _ = cell_cost.costs([*project.plan.cells, *cells], split.measured(project), {}, {})
    costs = {name: cost.amount for name, cost in every.items()}
    busy = {
        queue.name: sum(costs[name] for name in _waiting(project, queue.name)) for queue in chosen
    }
    speeds = dict.fromkeys(busy, 1.0)
    spread = longest_first.spread({line.name: costs[line.name] for line in new}, speeds, busy)
    return {cell: queue for queue, names in spread.items() for cell in names}


def _cell(project: Project, line: CellLine) -> Cell:
    epochs = said.epochs(project.plan, line) or 1
    return Cell(line.name, line.cfg, line.task, epochs, "", -1, None, line.own, line.overrides)


def _waiting(project: Project, queue: str) -> Iterator[str]:
    """The cells of a queue that have not ended, as far as this machine knows without asking."""
    site = find_site(project, show.say)
    ended = set[str]()
    # It is only a guess of how long the queue is at work.
    with contextlib.suppress(OSError, DamagedError):
        if site:
            ended = cell_cost.ended_well(journal.read(site.tier.journal(queue)).events)
    for cell in project.plan.cells:
        if cell.queue == queue and cell.name not in ended:
            yield cell.name


# --- what is written


def _refuse_what_plan_refuses(
    project: Project,
    queues: Sequence[QueueFile],
    after: Mapping[str, bytes],
    configs: Mapping[str, bytes],
) -> None:
    """What is wrong already is said as `plan` says it; of what the grid would add, the first."""
    changed = [
        queue_files.with_data(queue, after[queue.name]) if queue.name in after else queue
        for queue in queues
    ]
    found = resolve.resolve_queues(
        project.root, project.job, project.profile, changed, configs.keys()
    )
    problems = [*found.doubts, *found.faults]
    if old := [one for one in problems if one in (*project.doubts, *project.faults)]:
        raise InputError(old)
    if problems:
        more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
        raise InputError(
            f"`plan` would refuse these lines: {problems[0].text}{more}. No file was changed"
        )


def _refuse_what_push_refuses(
    project: Project, queues: Sequence[QueueFile], after: Mapping[str, bytes]
) -> None:
    """Lines that would not come below all those of the tier, as far as it is known here."""
    site = find_site(project, show.say)
    problems = []
    for queue in queues:
        there = site.tier.queue(queue.name) if site else None
        shared = sync.read(there) if there else None
        if queue.name in after and isinstance(
            sync.reconcile(after[queue.name], shared), sync.Diverged
        ):
            here, theirs = shlex.quote(str(queue.path)), shlex.quote(str(there))
            problems.append(
                f"{queue.file}: {there} holds lines that it lacks, and new ones come below them. "
                f"No file was changed; take that one first: cp {here} {here}.mine && "
                f"cp {theirs} {here}"
            )
    if problems:
        raise InputError(problems)


def _write_configs(code: Path, configs: Mapping[str, bytes]) -> None:
    """Before the lines that name them. Killed in between, the same command finishes it."""
    if written := cell_configs.write(code, configs):
        show.say(f"{counted(written, 'config')} written")


def _write_lines(project: Project, queues: Sequence[QueueFile], after: Mapping[str, bytes]) -> None:
    files = {queue.path.resolve(): after[queue.name] for queue in queues if queue.name in after}
    changed = {
        path: data for path, data in files.items() if not path.exists() or path.read_bytes() != data
    }
    if changed:
        rewrite.write(project.root, changed)


# --- what is shown


def _report(
    cells: Sequence[GridCell], left_out: Sequence[LeftOut], *, is_written: bool, as_json: bool
) -> None:
    if as_json:
        show.json_document({"is_written": is_written, "cells": cells, "left_out": left_out})
    elif cells:
        rows = [(cell.cell, cell.queue, cell.line) for cell in cells]
        show.table(f"grid: {counted(len(cells), 'new cell')}", ("cell", "queue", "line"), rows)
    there = [one for one in left_out if not one.is_dropped]
    dropped = [one for one in left_out if one.is_dropped]
    if there:
        also = ", and others" if len(there) > 1 else ""
        show.say(
            f"{counted(len(there), 'cell')} left out, in the queues already: {there[0].cell} "
            f"({there[0].at}){also}"
        )
    for one in dropped:
        show.say(f"{one.cell} left out: {one.at} has a # before it; append that line to run it")


def _say_next(project: Project, cells: Sequence[GridCell], is_to_write: bool) -> None:
    if not cells:
        show.say("no cell is new; the queue files are as they were")
    elif not is_to_write:
        show.say("no file was changed; the same command with --write appends the lines")
    else:
        was_launched = bool(launch_record.profiles_of(project.results))
        command = Command("launch" if was_launched else "plan")
        show.say(Message(f"{counted(len(cells), 'line')} appended. Next", command))
