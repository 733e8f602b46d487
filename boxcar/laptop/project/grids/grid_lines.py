"""The lines of a grid: how they are spelled and named, and which of them no queue has yet. Pure."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from boxcar.laptop.common.near import no_such
from boxcar.laptop.project import queue_files, resolve
from boxcar.laptop.project.grids import cell_configs
from boxcar.laptop.project.grids.grid_axes import axis, combinations
from boxcar.laptop.project.project import Project
from boxcar.laptop.project.queue_files import ConfigFiles, QueueFile
from boxcar.laptop.project.queues import cell_cost, rewrite, sync
from boxcar.laptop.project.queues.cell_cost import Sample
from boxcar.shared import names
from boxcar.shared.cell import cell_line, cell_name, own_words, placeholders, said
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import NO_CONFIG, NO_TASK, config_path, same_name_key
from boxcar.shared.cell.own_words import REST
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import journal, queue_line
from boxcar.shared.files.plan import Cell
from boxcar.shared.paths import DurablePaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, said_by

# What the queue files may not become: what `plan` or `push` would refuse is never written.


def refuse_what_plan_refuses(
    project: Project,
    queues: Sequence[QueueFile],
    after: Mapping[str, bytes],
    configs: Collection[str],
) -> None:
    """What is wrong already is said as `plan` says it; of what the grid would add, the first."""
    changed = [
        queue_files.with_data(queue, after[queue.name]) if queue.name in after else queue
        for queue in queues
    ]
    found = resolve.resolve_queues(project.root, project.job, project.profile, changed, configs)
    problems = [*found.doubts, *found.faults]
    if old := [one for one in problems if one in (*project.doubts, *project.faults)]:
        raise InputError(old)
    if problems:
        more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
        raise InputError(
            _(
                "`plan` would refuse these lines: {text}{more}. No file was changed",
                text=problems[0].text,
                more=more,
            )
        )


def refuse_what_push_refuses(
    tier: DurablePaths | None, queues: Sequence[QueueFile], after: Mapping[str, bytes]
) -> None:
    """Lines that would not come below all those of the tier, as far as it is known here."""
    problems = []
    for queue in queues:
        there = tier.queue(queue.name) if tier else None
        shared = sync.read_tier_queue(there) if there else None
        if queue.name in after and isinstance(
            sync.reconcile(after[queue.name], shared), sync.Diverged
        ):
            here, theirs = shlex.quote(str(queue.path)), shlex.quote(str(there))
            problems.append(
                _(
                    "{file}: {there} has lines that are missing here, and new lines must come "
                    "after them. No file was changed. Take that file first: cp {here} {here}.mine "
                    "&& cp {theirs} {here}",
                    file=queue.file,
                    there=there,
                    here=here,
                    theirs=theirs,
                )
            )
    if problems:
        raise InputError(problems)


# Which queue gets which new cell: the longest first, to where it ends earliest.


def queues_of_cells(
    project: Project,
    chosen: Sequence[QueueFile],
    new: Sequence[CellLine],
    samples: Sequence[Sample],
    tier: DurablePaths | None,
) -> dict[str, str]:
    """The queue of each new cell, by its name.

    `samples` are what earlier cells took; `tier` is read where it is within reach.
    """
    cells = [_cell(project, line) for line in new]
    every, _ = cell_cost.costs_of_cells([*project.plan.cells, *cells], samples, {}, {})
    costs = {name: cost.amount for name, cost in every.items()}
    speeds = {queue.name: float(len(queue.queues)) for queue in chosen}
    busy = {
        queue: sum(costs[name] for name in _waiting(project, queue, tier)) / speed
        for queue, speed in speeds.items()
    }
    spread = cell_cost.lines_by_cost({line.name: costs[line.name] for line in new}, speeds, busy)
    return {cell: queue for queue, names in spread.items() for cell in names}


def _cell(project: Project, line: CellLine) -> Cell:
    epochs = said.epochs(project.plan, line) or 1
    return Cell(line.name, line.cfg, line.task, epochs, "", -1, None, line.own, line.overrides)


def _waiting(project: Project, queue: str, tier: DurablePaths | None) -> Iterator[str]:
    """The cells of a queue that have not ended, as far as this machine knows without asking."""
    ended = set[str]()
    for member in project.plan.queues if tier else ():
        # It is only a guess of how long the queue is at work.
        with contextlib.suppress(OSError, DamagedError):
            if tier and names.file_of(member) == queue:
                ended |= cell_cost.ended_well(journal.read_journal(tier.journal(member)).events)
    for cell in project.plan.cells:
        if cell.queue == queue and cell.name not in ended:
            yield cell.name


_AFTER = "after="
_NAME = "name="
_MOST = 3  # of one kind
_HERE = _("the grid itself")


@dataclass(frozen=True)
class Grid:
    """What was asked for. `words` are overrides with their values, and Boxcar's own words."""

    cfg: str
    task: str
    epochs: int | None
    words: tuple[str, ...]


@dataclass(frozen=True)
class Known:
    """A line that is there: where it stands, and whether it has a # before it."""

    line: CellLine
    at: str
    is_dropped: bool = False


@dataclass(frozen=True)
class LeftOut:
    """A cell of the grid that is not written, because a line says the same cell already."""

    cell: str
    at: str
    is_dropped: bool


def grid_lines(grid: Grid) -> list[CellLine]:
    """One for each cell. Raises InputError for words that no line could have."""
    own = [word for word in _before(grid.words) if own_words.is_own(word)]
    try:
        for word in own:
            _check_own(word)
        found = [_line(grid, own, overrides) for overrides in _overrides(grid.words)]
    except ValueError as error:
        raise InputError(_("{error}. No file was changed", error=said_by(error))) from error
    return found


def with_config(line: CellLine, cfg: str) -> CellLine:
    """The cell with a config of its own in place of the overrides."""
    words = [cfg, line.task, *([str(line.epochs)] if line.epochs else [])]
    return replace(_parsed(words), own=line.own)


def divide_lines(
    new: Sequence[CellLine], known: Sequence[Known], saying_of: Callable[[CellLine], str]
) -> tuple[list[CellLine], list[LeftOut]]:
    """The lines that say a new cell, and the others.

    Raises InputError for a name that would say two cells, with both lines.
    """
    there = {same_name_key(one.line.name): one for one in known if not one.is_dropped}
    sayings = {
        saying_of(one.line): one for one in sorted(known, key=lambda one: not one.is_dropped)
    }
    kept, left_out, twins = list[CellLine](), list[LeftOut](), list[tuple[CellLine, Known]]()
    for line in new:
        key = same_name_key(line.name)
        if same := sayings.get(saying_of(line)):
            left_out.append(LeftOut(line.name, same.at, same.is_dropped))
        elif other := there.get(key):
            twins.append((line, other))
        else:
            kept.append(line)
            there[key] = Known(line, _HERE)
    if twins:
        raise InputError([*_of_one_name(twins)])
    return kept, left_out


def _of_one_name(twins: Sequence[tuple[CellLine, Known]]) -> Iterator[str]:
    for line, other in twins[:_MOST]:
        if other.at == _HERE:
            yield (
                _(
                    "{other_line} and {line} would share the name {cell!r}, or one folder on some "
                    "file systems. Remove one of these values, and write its line by hand with "
                    "name=. No file was changed",
                    other_line=cell_line.quoted_line(other.line),
                    line=cell_line.quoted_line(line),
                    cell=line.name,
                )
            )
            continue
        yield (
            _(
                "{cell!r} would be the name of {line}, but {at} has it for {other_line}. A name "
                "belongs to one cell: give that line another with name=, or use another config. "
                "No file was changed",
                cell=line.name,
                line=cell_line.quoted_line(line),
                at=other.at,
                other_line=cell_line.quoted_line(other.line),
            )
        )
    if len(twins) > _MOST:
        yield _("the same holds for {n} more cells of the grid", n=len(twins) - _MOST)


def _line(grid: Grid, own: Sequence[str], overrides: Sequence[str]) -> CellLine:
    epochs = [str(grid.epochs)] if grid.epochs is not None else []
    line = _parsed([grid.cfg, grid.task, *epochs, *own, *overrides])
    name = cell_name.in_any_script(line.cfg, line.task, line.overrides)
    cell_name.check_name(name)
    return replace(line, name=name)


def _parsed(words: Sequence[str]) -> CellLine:
    text = shlex.join(words)
    try:
        line = cell_line.parse(text.encode(), index=-1, number=0)
    except ValueError as error:
        raise ValueError(_("{head}: {text}", head=text, text=said_by(error))) from error
    return line


def _before(words: Sequence[str]) -> Sequence[str]:
    return words[: words.index(REST)] if REST in words else words


def _overrides(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Of each cell. What stands behind a `--` has its values too; nobody judges its keys."""
    plain = [word for word in _before(words) if not own_words.is_own(word)]
    behind = list(words[len(_before(words)) + 1 :])
    if not plain and not behind:
        raise ValueError(_("a grid needs at least one key with values, such as lr=1e-3,3e-4"))
    for found in combinations([axis(word) for word in (*plain, *behind)]):
        yield (*found[: len(plain)], *([REST] if behind else []), *found[len(plain) :])


def _check_own(word: str) -> None:
    """What Boxcar is told is the same for all cells of a grid."""
    if word.startswith(_NAME):
        raise ValueError(
            _("{word!r}: the cells of a grid get their names from their values", word=word)
        )
    if not word.startswith(_AFTER) and len(axis(word)) > 1:
        raise ValueError(
            _(
                "{word!r} is Boxcar's own word, with one value for all cells. If it belongs to "
                "your script, put it after {rest}",
                word=word,
                rest=REST,
            )
        )


# The lines that are there already, and what each line says: none is written a second time.


def known_lines_of_queues(queues: Sequence[QueueFile]) -> list[Known]:
    """The lines of all queues, and those with a # before them."""
    found = [Known(line, queue.at(line)) for queue, line in queue_files.queue_lines(queues)]
    for queue in queues:
        dropped = queue_line.commented_out(rewrite.content(queue.path))
        found += [Known(line, queue.at(line), is_dropped=True) for line in dropped]
    return found


def sayings_of_lines(project: Project, configs: Mapping[str, bytes]) -> Callable[[CellLine], str]:
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
        return said.saying_of(project.plan, line, sha256)

    return of_line


# What was typed as a grid, made into its cells; touches nothing.


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
    found = grid_lines(_grid(project, asked))
    configs = _configs(project, asked, found)
    if configs:
        pairs = zip(found, configs, strict=True)
        found = [with_config(cell, path) for cell, path in pairs]
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
                "the first word is the config of all cells, and {cfg!r} is not one. If your "
                "script takes no config, write - there. No file was changed",
                cfg=asked.cfg,
            )
        )
    code = project.root / project.job.code
    if asked.cfg != NO_CONFIG and not ConfigFiles(code).find(config_path(asked.cfg)):
        near = queue_files.nearest_file(code, asked.cfg)
        said = _(
            "there is no config {name!r} in {code}{near}", name=asked.cfg, code=code, near=near
        )
        raise InputError(
            _(
                "{text}. No file was changed. If your script takes no config, write: boxcar grid "
                "- KEY=VALUE,VALUE",
                text=said,
            )
        )
    task = asked.task or NO_TASK
    if task == NO_TASK and placeholders.takes(project.plan.command, "task"):
        raise InputError(_("--task is missing, but the command uses {{task}}. No file was changed"))
    return Grid(asked.cfg, task, asked.epochs, asked.words)


def _configs(project: Project, asked: Asked, cells: Sequence[CellLine]) -> dict[str, bytes]:
    """The file of each cell, by its path below the code folder; none without --configs."""
    if not asked.configs:
        return {}
    if asked.cfg == NO_CONFIG:
        raise InputError(_("--configs needs a config as its base, found -. No file was changed"))
    into = cell_configs.folder(asked.configs)
    code = project.root / project.job.code
    return cell_configs.files(code, config_path(asked.cfg), into, cells)
