"""`invoke smoke`: every cell for two batches, on this machine's CPU, before money is spent.

It runs from a copy of the code as it would be shipped, in the environment that a box would give it,
with loggers off; so what an ignore file leaves out, or what only your own shell has, is missed here
and not on the box. What passed is remembered (smoke_record.py) and not run again.

Not covered: the GPU, the box's own packages, and whether what is learned makes sense.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.common.near import pick
from boxcar.laptop.project import profile_choice
from boxcar.laptop.project.project import Project
from boxcar.laptop.sites.open_site import find_site, python_here
from boxcar.laptop.tryout import passes
from boxcar.laptop.tryout.passes import SmokePass
from boxcar.laptop.tryout.stage import Stage, by_hand, prepare, tail, try_cell
from boxcar.shared import timestamp
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Cell
from boxcar.shared.message import Command, Message, counted

PASSED, BEFORE, FAILED, TIMED_OUT = "passed", "passed before", "failed", "timed out"


@dataclass(frozen=True)
class Outcome:
    """How one cell's try ended. `like`: the cell that was run in its place, as it is the same.

    `lacks`: the artifacts that it did not write. `by_hand`: what to type to see a failure again.
    """

    cell: str
    word: str
    why: str = ""
    seconds: float | None = None
    lacks: tuple[str, ...] = ()
    like: str | None = None
    log: str | None = None
    by_hand: str | None = None

    @property
    def is_good(self) -> bool:
        return self.word in (PASSED, BEFORE)


def smoke(project: Project, *, cells: Sequence[str] | None = None, as_json: bool = False) -> int:
    """Try what has no pass yet; 1 where a cell failed. Raises InputError, TemporaryError, OSError.

    `cells` narrows to these names. Cells that are the same but for their name are run once.
    """
    _refuse_without_words(project)
    wanted = _wanted(project, cells)
    profile_choice.remember(project.results, project.profile.name, profile_choice.SMOKED)
    with prepare(project, python_here(project)) as stage:
        outcomes = _try_all(stage, wanted)
    _report(project, outcomes, as_json=as_json)
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


def _refuse_without_words(project: Project) -> None:
    if not project.job.smoke:
        raise InputError(
            f"{project.job.at('smoke')}: the job does not say what makes a run short. Add the "
            "words that your script takes for it, such as: smoke: --limit-batches 2 --epochs 1"
        )


def _wanted(project: Project, names: Sequence[str] | None) -> list[Cell]:
    known = {cell.name: cell for cell in project.plan.cells}
    chosen = pick(names or (), known, what="cell", of=f"the run {project.plan.run}")
    return [known[name] for name in chosen or known]


def _try_all(stage: Stage, cells: Sequence[Cell]) -> list[Outcome]:
    keys = passes.keys(stage.project, stage.files)
    ended: dict[str, Outcome] = {}
    outcomes = []
    _say_fewer_ranks(cells)
    with show.progress() as bar:
        task = bar.add_task("smoke", total=len(cells))
        for cell in cells:
            bar.update(task, description=f"smoke  {cell.name}")
            key = keys[cell.name]
            if key in ended:
                outcome = replace(ended[key], cell=cell.name, like=ended[key].cell)
            else:
                outcome = ended[key] = _remembered(stage, cell, key) or _try(stage, cell, key)
            outcomes.append(outcome)
            bar.advance(task)
    return outcomes


def _say_fewer_ranks(cells: Sequence[Cell]) -> None:
    if any((cell.nproc or 1) > passes.MOST_RANKS for cell in cells):
        show.say(f"cells with more ranks are tried with {passes.MOST_RANKS}")


def _remembered(stage: Stage, cell: Cell, key: str) -> Outcome | None:
    passed = passes.read(stage.project.root, key)
    if passed is None:
        return None
    return Outcome(cell.name, BEFORE, "", passed.seconds, passed.lacks)


def _try(stage: Stage, cell: Cell, key: str) -> Outcome:
    began = time.monotonic()
    why, is_late = try_cell(stage, cell)
    seconds = round(time.monotonic() - began, 1)
    out, log = stage.out(cell.name), str(stage.log(cell.name))
    wanted = [artifact.path for artifact in stage.project.plan.artifacts]
    lacks = tuple(name for name in wanted if not (out / name).exists())
    if why:
        word, typed = TIMED_OUT if is_late else FAILED, by_hand(stage, cell)
        return Outcome(cell.name, word, why, seconds, lacks, None, log, typed)
    size_bytes, files = _measure(out)
    passed = SmokePass(cell.name, timestamp.utc_now(), seconds, size_bytes, files, lacks)
    passes.write(stage.project.root, key, passed)
    shutil.rmtree(out, ignore_errors=True)  # forty checkpoints fill a laptop
    return Outcome(cell.name, PASSED, "", seconds, lacks, None, log)


def _measure(folder: Path) -> tuple[int, int]:
    """What lies in the folder: bytes and files."""
    found = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(found), len(found)


# --- what is shown


def _report(project: Project, outcomes: Sequence[Outcome], *, as_json: bool) -> None:
    if as_json:
        show.json_document({"run": project.plan.run, "cells": outcomes})
    else:
        rows = [(item.cell, item.word, item.seconds, _note(item)) for item in outcomes]
        show.table(f"smoke of {project.plan.run}", ("cell", "result", "seconds", "note"), rows)
    for item in outcomes:
        if not item.is_good and item.like is None:
            _say_failure(item)
    _say_lacking(outcomes)
    if bad := sum(not item.is_good for item in outcomes):
        failed = f"{bad} of {counted(len(outcomes), 'cell')} failed. Fix that, then"
        show.say(Message(failed, Command("smoke")))
    else:
        site = find_site(project, show.say)
        verb = "launch" if site and not site.needs_audit else "audit"
        show.say(Message("Next", Command(verb)))


def _note(item: Outcome) -> str:
    like = f"the same as {item.like}" if item.like else ""
    return "; ".join(filter(None, (item.why, like)))


def _say_failure(item: Outcome) -> None:
    show.say(f"--- {item.cell}: {item.why}. The end of {item.log}:")
    for line in tail(Path(item.log or "")):
        show.say(f"  {line}")
    show.say(f"by hand: {item.by_hand}")


def _say_lacking(outcomes: Sequence[Outcome]) -> None:
    """Not refused: two batches may not be enough for a best checkpoint."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for item in outcomes:
        if item.is_good and item.lacks:
            lacking.setdefault(item.lacks, []).append(item.cell)
    for names, cells in lacking.items():
        show.say(
            f"not written in so short a run: {', '.join(names)} ({', '.join(cells)}). A finished "
            "cell must hold that; see that your script writes it into {out} when it ends"
        )
