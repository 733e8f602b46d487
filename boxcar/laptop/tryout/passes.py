"""The smoke passes of a project: what was tried here, remembered by what it was made of.

A pass holds for the same words, launcher, ranks, environment, config and code, whichever cell had
them. The configs of other cells are no part of a cell's code unless its own config names them, so a
cell that is added costs no new try of the others; neither are the queue files and job.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

from boxcar.laptop.common.home import Home
from boxcar.laptop.fitness.space import Measured
from boxcar.laptop.project import cell_faults, short_run
from boxcar.laptop.release import code_files
from boxcar.laptop.release.code_files import CodeFile
from boxcar.laptop.tryout.outcome import FoundNumber
from boxcar.shared.cell import launch, said, terms
from boxcar.shared.cell.cell_name import NO_CONFIG, config_path, key_of
from boxcar.shared.cell.own_words import MARKS
from boxcar.shared.cell.said import Places
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.shared.files.plan import Cell
from boxcar.shared.record import dataclass

if TYPE_CHECKING:
    from boxcar.laptop.project.project import Project


# Which cells a smoke tries: each of a few, and of a grid one of each kind.


MOST_EACH = 12


def chosen(cells: Sequence[Cell], kinds: Sequence[Hashable]) -> list[Cell]:
    """Each of up to 12; else the first, the last, and the first of each kind, in their order.

    `kinds` are the cells', one for each.
    """
    if len(cells) <= MOST_EACH:
        return list(cells)
    firsts: dict[Hashable, int] = {}
    for at, kind in enumerate(kinds):
        firsts.setdefault(kind, at)
    wanted = {0, len(cells) - 1, *firsts.values()}
    return [cell for at, cell in enumerate(cells) if at in wanted]


# Two find what one cannot (a sampler, a barrier, an unused parameter), more find nothing else.
MOST_RANKS = 2


@dataclass(frozen=True)
class SmokePass:
    """One try that ended well. `size_bytes` and `files`: all that it left in {out}."""

    FORMAT: ClassVar[str] = "smoke-pass"
    VERSION: ClassVar[int] = 1

    cell: str
    at: str
    seconds: float
    size_bytes: int
    files: int
    lacks: tuple[str, ...]  # the artifacts that two batches did not write
    # What it wrote beside its code, the topmost names.
    beside: tuple[str, ...] = field(default=(), metadata=codec.LATER)
    # What artifacts mean, and a box leaves out: names that Boxcar uses itself.
    reserved: tuple[str, ...] = field(default=(), metadata=codec.LATER)
    # Why one of the job's `metrics` was not found, by its name.
    no_number: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    # What was found of the others.
    numbers: dict[str, FoundNumber] = field(default_factory=dict, metadata=codec.LATER)
    # The most that its processes held together, and what of it was shared memory, where it is told.
    memory_bytes: int | None = field(default=None, metadata=codec.LATER)
    shm_bytes: int | None = field(default=None, metadata=codec.LATER)


def skipped(project: Project) -> dict[str, str]:
    """The cells that the job leaves out of its smoke, with the reasons."""
    names = [cell.name for cell in project.plan.cells]
    reasons = {name: cell_faults.why_skipped(project.job, name) for name in names}
    return {name: reason for name, reason in reasons.items() if reason}


def by_reason(skipped: Mapping[str, str]) -> dict[str, list[str]]:
    """The names of each reason: what is said of forty cells is said once."""
    found: dict[str, list[str]] = {}
    for name, reason in skipped.items():
        found.setdefault(reason, []).append(name)
    return found


@dataclass(frozen=True)
class Unknown:
    """What no smoke knows: how many cells nobody tried, and those that the job leaves out."""

    not_tried: int
    skipped: dict[str, str]


def unknown(project: Project) -> Unknown:
    """Raises InputError."""
    return Unknown(len(untried(project)), skipped(project))


def to_try(project: Project) -> list[Cell]:
    """The cells that a smoke tries unless it is told which."""
    left_out = skipped(project)
    cells = [cell for cell in project.plan.cells if cell.name not in left_out]
    return chosen(cells, [_kind(project, cell) for cell in cells])


def missing(project: Project) -> list[str]:
    """Those of them, by name, without a pass for what would run now. Raises InputError."""
    passes = _passes(project)
    return [cell.name for cell in to_try(project) if passes.get(cell.name) is None]


def untried(project: Project, tried: Collection[str] = ()) -> list[str]:
    """The cells that nothing is known of: neither just tried, nor passed, nor left out.

    Raises InputError.
    """
    known = {name for name, passed in _passes(project).items() if passed}
    known |= skipped(project).keys() | set(tried)
    return [cell.name for cell in project.plan.cells if cell.name not in known]


def measured(project: Project) -> Measured | None:
    """The most of the passes that hold now; None where there is none.

    A model has its full size after two batches already. Of more ranks than were tried, each takes
    as much memory. Raises InputError.
    """
    passes = _passes(project)
    found = [(cell, one) for cell in project.plan.cells if (one := passes.get(cell.name))]
    if not found:
        return None
    memory = [(_more_ranks(project, cell), one) for cell, one in found]
    shipped = code_files.snapshot_of(project).files
    return Measured(
        max(one.size_bytes for _cell, one in found),
        max(one.files for _cell, one in found),
        max(more * (one.memory_bytes or 0) for more, one in memory),
        max(more * (one.shm_bytes or 0) for more, one in memory),
        sum(file.source.stat().st_size for file in shipped),
    )


def _more_ranks(project: Project, cell: Cell) -> int:
    """How many times the ranks of a try a box will start; a plain Python starts none."""
    held = terms.terms_of_cell(project.plan, cell.name, cell.own)
    if held.launcher == launch.PYTHON:
        return 1
    return max(1, (cell.nproc or held.gpus or 1) // ranks(cell))


def keys(project: Project, files: Sequence[CodeFile]) -> dict[str, str]:
    """The digest of each cell's try, by the cell's name; a config that is not shipped has none."""
    shipped = {config_path(file.path): file for file in files}
    configs = {cell.name: config_path(cell.cfg) for cell in project.plan.cells}
    apart = {place: shipped[place] for place in configs.values() if place in shipped}
    code = _code(project, shipped, apart)
    of_config: dict[str, dict[str, Any]] = {
        place: {"config": digest.of_file(file.source), "named": _named_by(place, apart)}
        for place, file in apart.items()
    }
    of_config[NO_CONFIG] = {"config": None, "named": {}}
    return {
        cell.name: digest.of_json(_tried(project, cell) | {"code": code} | of_config[place])
        for cell in project.plan.cells
        if (place := configs[cell.name]) in of_config
    }


def read_passes(root: Path, key: str) -> SmokePass | None:
    """The pass of that digest. One that cannot be read is none: the cell is tried again."""
    path = _path(root, key)
    try:
        return codec.from_document(SmokePass, path.read_bytes(), str(path))
    except (FileNotFoundError, DamagedError):
        return None


def write_pass(root: Path, key: str, passed: SmokePass) -> None:
    path = _path(root, key)
    atomic.make_folder(path.parent)
    atomic.write_whole(path, codec.to_document(passed))


def forget(root: Path, key: str) -> None:
    """What all tries together show to be none."""
    _path(root, key).unlink(missing_ok=True)


def ranks(cell: Cell) -> int:
    """How many ranks a try has; `auto` is one, as on a machine without a GPU."""
    return min((cell.nproc or 1) * cell.nodes, MOST_RANKS)


def _kind(project: Project, cell: Cell) -> Hashable:
    """Two cells of one kind differ in values alone."""
    keys = (key_of(word) for word in cell.overrides if word.startswith(MARKS) or "=" in word)
    return (
        cell.cfg,
        frozenset(keys),
        terms.terms_of_cell(project.plan, cell.name, cell.own).launcher,
    )


def _passes(project: Project) -> dict[str, SmokePass | None]:
    """Each cell's pass, by name. Nothing is asked of the code where nothing was ever tried."""
    if not cell_faults.is_smoke_given(project.job) or not Home(project.root).smoke_passes.is_dir():
        return {}
    files = code_files.snapshot_of(project).files
    return {name: read_passes(project.root, key) for name, key in keys(project, files).items()}


def _path(root: Path, key: str) -> Path:
    return Home(root).smoke_passes / f"{key}.json"


def _code(project: Project, shipped: Mapping[str, CodeFile], apart: Mapping[str, CodeFile]) -> str:
    """The digest of the code that all cells have in common."""
    top = (project.root / project.job.code).resolve()
    # Another name of job.yaml costs a try more, whenever it is edited.
    own_files = [project.root / "job.yaml", *project.queue_files.values()]
    beside = {
        config_path(path.resolve().relative_to(top).as_posix())
        for path in own_files
        if path.resolve().is_relative_to(top)
    }
    return digest.of_json(
        {
            place: [digest.of_file(file.source), file.is_executable]
            for place, file in shipped.items()
            if place not in apart and place not in beside
        }
    )


def _named_by(place: str, configs: Mapping[str, CodeFile]) -> dict[str, str]:
    """The other cells' configs that this one names, and those that they name: name -> digest.

    By name alone: a word that only looks like one costs a try more, and never one too few.
    """
    reached = {place}
    wanted = [place]
    while wanted:
        text = configs[wanted.pop()].source.read_bytes()
        new = [other for other in configs.keys() - reached if _names(text, other)]
        reached.update(new)
        wanted += new
    return {other: digest.of_file(configs[other].source) for other in sorted(reached - {place})}


def _names(text: bytes, place: str) -> bool:
    stem = PurePosixPath(place).stem.encode()
    # The plain look first: it is what a thousand configs can afford.
    return stem in text and bool(re.search(rb"(?<![\w-])%s(?![\w-])" % re.escape(stem), text))


def _tried(project: Project, cell: Cell) -> dict[str, Any]:
    """What is run, but for the folders that it is run in: another cell's pass holds for the same
    words alone.
    """
    found = terms.terms_of_cell(project.plan, cell.name, cell.own)
    places = Places("{out}", "{code}", said.resume_place("{out}", found.resume))
    short = cell_faults.short_run_of_cell(project.job, cell.name)
    what = short_run.describe_short_run(project.plan, cell, places, short)
    metrics = [codec.encode(metric) for metric in project.plan.metrics]
    return {
        "words": what.words,
        # A config may name others relative to where it lies.
        "folder": str(PurePosixPath(config_path(cell.cfg)).parent),
        "resume": found.resume,
        "launcher": what.launcher,
        "ranks": ranks(cell),
        "env": what.env,
        "workdir": project.plan.workdir,
        "artifacts": [codec.encode(item) for item in found.artifacts],
        **({"metrics": metrics} if metrics else {}),
        **({"links": project.plan.links} if project.plan.links else {}),
    }
