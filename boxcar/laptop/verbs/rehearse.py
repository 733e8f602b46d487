"""`invoke rehearse`: a cell twice on this machine's CPU, once with a SIGKILL, and what differs.

The runs and their comparison are boxcar.training.rehearse's, in a child: it loads checkpoints with
the training's own Python. Here its cell, its words and its stage are made, which are the smoke's:
the code as it would be shipped, in the environment that a box would give it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.laptop.common import show
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.common.progress import THINGS, Part
from boxcar.laptop.places.open_site import python_here
from boxcar.laptop.project import cell_faults
from boxcar.laptop.project.project import Project
from boxcar.laptop.tryout import passes
from boxcar.laptop.tryout.stage import Stage, begin_try, note_try, prepare, start, write_files
from boxcar.shared.artifacts import resume_match
from boxcar.shared.cell import terms
from boxcar.shared.errors import BoxcarError, InputError, reason_of, some
from boxcar.shared.event_words import SENTENCES, hear_in
from boxcar.shared.files.plan import IN_OUT, Cell
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, chained, in_language, known_word, mark

MODULE = "boxcar.training.rehearse"
MOST_KILLS = 100
_MOST_NAMED = 3
# What the child calls an outcome.
_WORDS = (
    mark("bit-equal"),
    mark("within tolerance"),
    mark("differs"),
    mark("not proven"),
    mark("failed"),
)
# The child kills the run that is at work, and waits until nothing of it lives.
_GRACE_S = 35.0


@dataclass(frozen=True)
class Outcome:
    """One cell's rehearsal. `report` is the child's whole document, `lines` its sentences."""

    cell: str
    word: str
    is_good: bool
    seconds: float
    lines: tuple[str, ...]
    report: dict[str, Any]


def rehearse(
    project: Project,
    *,
    cells: Sequence[str] | None = None,
    kills: int = 1,
    seed: int | None = None,
    tolerance: float | None = None,
    as_json: bool = False,
) -> int:
    """Rehearse the cells; 1 where one is not proven to resume. Raises BoxcarError, OSError.

    Without `cells` it is the first of each task and number of ranks.
    """
    _refuse(project, kills, tolerance)
    flags = ["--kills", str(kills)]
    flags += [] if seed is None else ["--seed", str(seed)]
    flags += [] if tolerance is None else ["--tolerance", str(tolerance)]
    project = _with_words(project)
    chosen = _wanted(project, cells) if cells else _first_of_each_kind(_unskipped(project))
    with (
        prepare(project, python_here(project), show.progress) as stage,
        show.progress(_("rehearse"), THINGS) as bar,
    ):
        outcomes = _rehearse_all(stage, chosen, flags, bar.part(len(chosen)))
    _report(project, outcomes, as_json=as_json)
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


def _refuse(project: Project, kills: int, tolerance: float | None) -> None:
    job, problems = project.job, []
    if not (job.rehearse.is_given or cell_faults.is_smoke_given(job)):
        problems.append(
            _(
                "{at}: the job does not say how to run a few dozen steps only. Add your script's "
                "flags for that, such as: rehearse: --limit-batches 8 --epochs 5",
                at=job.at("rehearse"),
            )
        )
    if not job.resume:
        problems.append(
            _(
                "{at}: the job names no file to resume from, so there is nothing to rehearse. Add "
                "it, such as: resume: latest.pth",
                at=job.at("resume"),
            )
        )
    if not 1 <= kills <= MOST_KILLS:
        problems.append(
            _(
                "--kills: expected a number from 1 to {most}, found {found}",
                most=MOST_KILLS,
                found=kills,
            )
        )
    if tolerance is not None and not 0 <= tolerance < 1:
        problems.append(
            _(
                "--tolerance: expected a number from 0 up to, but not including, 1; found {found}",
                found=f"{tolerance:g}",
            )
        )
    if problems:
        raise InputError(problems)


def _wanted(project: Project, names: Sequence[str]) -> list[Cell]:
    known = {cell.name: cell for cell in project.plan.cells}
    chosen = pick(names, known, what="cell", of=the_run(project.plan.run))
    return [known[name] for name in chosen]


def _unskipped(project: Project) -> list[Cell]:
    left_out = passes.skipped(project)
    for reason, names in passes.by_reason(left_out).items():
        words = {"cells": some(names, _MOST_NAMED), "n": len(names), "reason": reason}
        show.say(_("{cells} {n:is|are} skipped: {reason}", **words))
    return [cell for cell in project.plan.cells if cell.name not in left_out]


def _first_of_each_kind(cells: Sequence[Cell]) -> list[Cell]:
    """Cells of one task and as many ranks resume by the same lines of the script."""
    first: dict[tuple[str, int], Cell] = {}
    for cell in cells:
        first.setdefault((cell.task, passes.ranks(cell)), cell)
    return list(first.values())


def _with_words(project: Project) -> Project:
    """The stage makes a run short as a smoke does: here it is as a rehearsal does."""
    job = project.job
    if not job.rehearse.is_given:
        show.say(_("the job has no rehearse:, so smoke: is used; it may be too short"))
        return project
    cells = {name: rule.model_copy(update={"smoke": None}) for name, rule in job.cells.items()}
    return replace(project, job=job.model_copy(update={"smoke": job.rehearse, "cells": cells}))


# --- one cell


def _rehearse_all(
    stage: Stage, cells: Sequence[Cell], flags: Sequence[str], part: Part
) -> list[Outcome]:
    outcomes = []
    for number, cell in enumerate(cells, 1):
        part.doing = cell.name
        show.say(_("--- {cell} ({n} of {all})", cell=cell.name, n=number, all=len(cells)))
        outcomes.append(_rehearse(stage, cell, flags))
        part.add()
    return outcomes


def _rehearse(stage: Stage, cell: Cell, flags: Sequence[str]) -> Outcome:
    began = time.monotonic()
    work = stage.out(cell.name).parent
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    begins = start(stage, cell)
    write_files(begins)
    argv = _argv(stage, cell, begins.argv, work, flags)
    code = _run_child(stage, argv, begins.environ)
    stage.copy.put_back(())  # what it wrote there is in the child's report
    document = _read(work / "report.json", cell, code)
    seconds = round(time.monotonic() - began, 1)
    document = hear_in(document, document.pop(SENTENCES, None))
    lines = tuple(document.pop("lines", ()))
    return Outcome(
        cell.name,
        str(document.get("word")),
        bool(document.pop("is_good", False)),
        seconds,
        lines,
        document,
    )


def _argv(
    stage: Stage, cell: Cell, words: Sequence[str], work: Path, flags: Sequence[str]
) -> list[str]:
    plan = stage.project.plan
    found = terms.terms_of_cell(plan, cell.name)
    artifacts = [word for item in found.artifacts for word in ("--artifact", item.path)]
    cwd = "{out}" if plan.workdir == IN_OUT else str(stage.code)
    places = ["--work", str(work), "--cwd", cwd, "--resume", str(found.resume)]
    places += [f"--link={name}={stage.code / to}" for name, to in plan.links.items()]
    resumed = _resumed(stage, cell, found.resume)
    flags = ["--notes", *flags]
    return [stage.python, "-m", MODULE, *places, *artifacts, *resumed, *flags, "--", *words]


def _resumed(stage: Stage, cell: Cell, resume: str | None) -> list[str]:
    """The words of a start that finds a checkpoint, where they are others."""
    if not stage.project.plan.resume_args and not resume_match.is_pattern(resume or ""):
        return []
    return [f"--resumed={word}" for word in start(stage, cell, "{resume}").argv]


def _run_child(stage: Stage, argv: Sequence[str], environment: dict[str, str]) -> int:
    """Its exit code, once it has ended; what it says on the way is said at once."""
    begin_try(stage.folder)
    try:
        process = subprocess.Popen(
            argv,
            # Not the code folder: a json.py of the user's would win over Python's.
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # one Ctrl-C is one interrupt, and it is sent from here
            pass_fds=(stage.held,),
        )
    except OSError as error:
        raise InputError(
            _("{argv}: cannot be started: {error}", argv=argv[0], error=reason_of(error))
        ) from error
    try:
        note_try(stage.folder, process.pid)
        for line in process.stderr or ():
            show.quote(in_language(_note(line.rstrip("\n")), show.language()))
        return process.wait()
    finally:
        _end(process)


def _note(line: str) -> str:
    """A note of the child; whatever else it wrote is as it is."""
    try:
        note = json.loads(line)
        text: str = hear_in(note["text"], note[SENTENCES])
        return text
    except (ValueError, LookupError, TypeError):
        return line


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    process.kill()
    process.wait()


def _read(path: Path, cell: Cell, code: int) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BoxcarError(
            _(
                "{cell}: the rehearsal ended with exit code {code} and left no report; the reason "
                "is above",
                cell=cell.name,
                code=code,
            )
        ) from None
    return dict(document)


# --- what is shown


def _report(project: Project, outcomes: Sequence[Outcome], *, as_json: bool) -> None:
    if as_json:
        show.json_document("rehearse", {"run": project.plan.run, "cells": outcomes})
    else:
        rows = [
            (item.cell, known_word(item.word, _WORDS), item.seconds, _suspects(item))
            for item in outcomes
        ]
        columns = ("cell", "result", "seconds", _("probably not restored"))
        show.table(_("rehearsal of {run}", run=project.plan.run), columns, rows)
        for item in outcomes:
            first = item.lines[0] if item.lines else item.word
            show.line(_("{head}: {text}", head=item.cell, text=first))
            for text in item.lines[1:]:
                show.line(text)
    if bad := [item.cell for item in outcomes if not item.is_good]:
        show.say(_("not proven to resume exactly: {cells}", cells=", ".join(bad)))


def _suspects(item: Outcome) -> str:
    states = [suspect.get("state") for suspect in item.report.get("suspects", ())]
    return chained(mark("{first}, {second}"), states)
