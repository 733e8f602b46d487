"""What new lines would run on, where an agent is at work: its own release, or the one to be pushed.

An agent runs a line whose config its own release lacks wholly on the newest release that has it. So
where more than configs differ between the two, the cells of one queue run different code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields as fields_of
from pathlib import PurePosixPath

from boxcar.laptop.run.view import QueueView, RunView
from boxcar.shared import names
from boxcar.shared.cell import cell_name
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import NO_CONFIG, config_path
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import queue_line, release
from boxcar.shared.files.plan import Cell, Plan, unlike
from boxcar.shared.files.release import CODE, PLAN, RUN_QUEUE, Release
from boxcar.shared.paths import DurablePaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# A line's own number of ranks stands beside the cells; the text of a diff differs as its files do.
# No line runs what starts an agent. Of boxes and queues `unlike` says what that cannot take over.
_NOT_CODE = ("boxes", "queues", "cells", "cell_nproc", "rules", "extra")
_NOT_FILES = (PLAN, "code.diff", RUN_QUEUE)


@dataclass(frozen=True)
class ToPush:
    """A release that is about to be pushed. `asides` are files of the code that no cell runs."""

    tier: DurablePaths
    release: Release
    plan: Plan
    asides: Collection[str] = ()


@dataclass(frozen=True)
class NewLines:
    """Lines of one queue, all with or all without a config in its agent's own release.

    `other` are the files, and fields of the plan, that differ beside the configs; `refused` are
    those fields that a running agent cannot take over.
    """

    queue: str
    release: str
    cells: tuple[str, ...]
    other: tuple[str, ...]
    refused: tuple[str, ...]


def new_lines(view: RunView, new: ToPush) -> list[NewLines]:
    """Of each queue that an agent is at work in.

    Not covered: an agent whose own release cannot be read here; what would run is not known then.
    """
    found = [_of_queue(queue, view, new, is_own=False) for queue in view.queues]
    return [lines for lines in found if lines]


def lines_on_old_code(view: RunView, new: ToPush) -> list[NewLines]:
    """Of each queue the lines that its agent runs on its own release, where that has other code."""
    found = [_of_queue(queue, view, new, is_own=True) for queue in view.queues]
    return [lines for lines in found if lines and lines.other]


def without_config(
    tier: DurablePaths, queues: Iterable[str], made: Release
) -> dict[str, list[str]]:
    """The lines on the tier whose config no release has, by queue, as `line 3: configs/x.yaml`."""
    known = set(_configs(made))
    for folder in tier.releases.glob("*/"):
        with contextlib.suppress(DamagedError, OSError):
            known |= _configs(release.read_release(folder)).keys()
    lacking: dict[str, list[str]] = {}
    for name in queues:
        for line in _lines(tier, name):
            if not _has_config(line, known):
                lacking.setdefault(name, []).append(f"line {line.number}: {line.cfg}")
    return lacking


def _of_queue(queue: QueueView, view: RunView, new: ToPush, *, is_own: bool) -> NewLines | None:
    session = queue.session
    if not queue.is_alive or session is None or session.release == new.release.digest:
        return None
    if names.is_member(queue.name) and queue.name not in new.plan.queues:
        return None  # it is drained, and the others take the lines
    folder = new.tier.release(session.release)
    try:
        own, own_plan = release.read_release(folder), release.read_plan(folder)
    except (DamagedError, FileNotFoundError):
        return None
    configs = _configs(own)
    cells = _not_begun(queue.name, view, new)
    lines = tuple(cell.name for cell in cells if _has_config(cell, configs) == is_own)
    if not lines:
        return None
    refused = tuple(unlike(own_plan, new.plan, queue.name))
    files = set(_other_files(own, new.release, (*new.plan.cells, *own_plan.cells)))
    fields = _other_fields(own_plan, new.plan)
    other = () if refused else (*sorted(files - set(new.asides)), *fields)
    return NewLines(queue.name, session.release, lines, other, refused)


def _not_begun(queue: str, view: RunView, new: ToPush) -> list[Cell]:
    """The queue's cells that no release has run yet.

    Of those on the tier only where the release is not there: to push the same one again changes
    nothing for them.
    """
    begun = {cell.name for cell in view.cells if cell.record and cell.record.attempts}
    if (new.tier.release(new.release.digest) / release.FILE).exists():
        begun |= {line.name for line in _lines(new.tier, queue)}
    file = names.file_of(queue)
    return [cell for cell in new.plan.cells if cell.queue == file and cell.name not in begun]


def _lines(tier: DurablePaths, queue: str) -> list[CellLine]:
    try:
        return queue_line.parse_queue(
            queue_line.with_last_line(tier.queue(queue).read_bytes())
        ).cells
    except FileNotFoundError:
        return []


def _configs(made: Release) -> dict[str, list[str]]:
    head = f"{CODE}/"
    paths = (file.path for file in made.files if file.path.startswith(head))
    return cell_name.stored_names(path.removeprefix(head) for path in paths)


def _has_config(line: Cell | CellLine, configs: Collection[str]) -> bool:
    return line.cfg == NO_CONFIG or config_path(line.cfg) in configs


def _other_files(own: Release, made: Release, cells: Iterable[Cell]) -> Iterator[str]:
    """What differs and is no config: of a line, or a new one beside those of lines."""
    before = {file.path: file.sha256 for file in own.files}
    now = {file.path: file.sha256 for file in made.files}
    configs = {f"{CODE}/{config_path(cell.cfg)}" for cell in cells}
    kinds = {_kind(path) for path in configs}
    for path in sorted(before.keys() | now.keys()):
        is_config = path in configs or (path not in before and _kind(path) in kinds)
        if before.get(path) != now.get(path) and path not in _NOT_FILES and not is_config:
            yield path.removeprefix(f"{CODE}/")


def _kind(path: str) -> tuple[str, str]:
    return str(PurePosixPath(path).parent), PurePosixPath(path).suffix


def _other_fields(own: Plan, made: Plan) -> Iterator[str]:
    for field in fields_of(Plan):
        name = field.name
        if name not in _NOT_CODE and getattr(own, name) != getattr(made, name):
            yield _("{name} of the plan", name=name)
