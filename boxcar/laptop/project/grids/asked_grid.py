"""What was typed as a grid, made into its cells; touches nothing."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.laptop.common.near import no_such
from boxcar.laptop.project import queue_files
from boxcar.laptop.project.grids import cell_configs, grid_lines
from boxcar.laptop.project.grids.grid_lines import Grid
from boxcar.laptop.project.project import Project
from boxcar.laptop.project.queue_files import ConfigFiles, QueueFile
from boxcar.shared.cell import placeholders
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import NO_CONFIG, NO_TASK, config_path
from boxcar.shared.errors import InputError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _


@dataclass(frozen=True)
class Asked:
    """What was typed. `words` are keys with their values, and Boxcar's own words."""

    cfg: str
    task: str = ""
    epochs: int | None = None
    words: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    configs: str = ""


def cells(project: Project, asked: Asked) -> tuple[list[CellLine], dict[str, bytes]]:
    """The line of each cell, and the configs that they name where each gets one of its own.

    Raises InputError.
    """
    found = grid_lines.grid_lines(_grid(project, asked))
    configs = _configs(project, asked, found)
    if configs:
        pairs = zip(found, configs, strict=True)
        found = [grid_lines.with_config(cell, path) for cell, path in pairs]
    return found, configs


def chosen(queues: Sequence[QueueFile], names: Sequence[str]) -> list[QueueFile]:
    """Those that were named, by queue or file; all where none was. Raises InputError."""
    by_name = {known: queue for queue in queues for known in (queue.file, queue.name)}
    problems = [
        no_such(name, [queue.file for queue in queues], what="queue", of=_("the job"))
        for name in names
        if name not in by_name
    ]
    if problems:
        raise InputError(problems)
    picked = [by_name[name].name for name in names] or [queue.name for queue in queues]
    return [queue for queue in queues if queue.name in picked]


def _grid(project: Project, asked: Asked) -> Grid:
    if "=" in asked.cfg:
        raise InputError(
            _(
                "the first word is the config of all cells, and {cfg!r} is none: write - where "
                "the script takes no config. No file was changed",
                cfg=asked.cfg,
            )
        )
    code = project.root / project.job.code
    if asked.cfg != NO_CONFIG and not ConfigFiles(code).find(config_path(asked.cfg)):
        near = queue_files.nearest_file(code, asked.cfg)
        said = _(
            "there is no config {name!r} in {code}{near}", name=asked.cfg, code=code, near=near
        )
        raise InputError(_("{text}. No file was changed", text=said))
    task = asked.task or NO_TASK
    if task == NO_TASK and placeholders.takes(project.plan.command, "task"):
        raise InputError(
            _("--task is missing, and the command takes {{task}}. No file was changed")
        )
    return Grid(asked.cfg, task, asked.epochs, asked.words)


def _configs(project: Project, asked: Asked, cells: Sequence[CellLine]) -> dict[str, bytes]:
    """The file of each cell, by its path below the code folder; none without --configs."""
    if not asked.configs:
        return {}
    if asked.cfg == NO_CONFIG:
        raise InputError(
            _("--configs needs a config as the base, and found -. No file was changed")
        )
    into = cell_configs.folder(asked.configs)
    code = project.root / project.job.code
    return cell_configs.files(code, config_path(asked.cfg), into, cells)
