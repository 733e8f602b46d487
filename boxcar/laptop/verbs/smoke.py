"""`invoke smoke`: every cell for two batches, on this machine's CPU, before money is spent.

It runs from a copy of the code as it would be shipped, in the environment that a box would give it,
with loggers off; so what an ignore file leaves out, or what only your own shell has, is missed here
and not on the box. What passed is remembered (tryout/passes.py) and not run again.

Not covered: the GPU, the box's own packages, and whether what is learned makes sense.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common import show, units
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.common.progress import THINGS
from boxcar.laptop.places.open_site import open_site, python_here
from boxcar.laptop.project import cell_faults, profile_choice
from boxcar.laptop.project.checks import tracker_logins
from boxcar.laptop.project.project import Project
from boxcar.laptop.tryout import one_try, outcome, passes
from boxcar.laptop.tryout.outcome import Outcome
from boxcar.laptop.tryout.stage import Stage, prepare, tail
from boxcar.laptop.verbs.next_step import before_launch
from boxcar.laptop.verbs.push import said_of_a_finished_run
from boxcar.shared.disk import atomic
from boxcar.shared.errors import Command, InputError, Message, some
from boxcar.shared.files.plan import LOG, Cell, Metric
from boxcar.shared.metrics import read
from boxcar.shared.sentence import _, known_word, mark

# Of the cells of one failure; their number is said.
_MOST_NAMED = 5


def smoke(
    project: Project,
    *,
    cells: Sequence[str] | None = None,
    is_all: bool = False,
    as_json: bool = False,
) -> int:
    """Try what has no pass yet; 1 where a cell failed.

    `cells` narrows to these names. Without them and without `is_all` it is one cell of each kind of
    a large grid. Cells that run the very same words are run once. Raises InputError, DamagedError,
    TemporaryError, OSError.
    """
    wanted = _wanted(project, cells, is_all=is_all)
    _refuse_without_words(project, wanted)
    profile_choice.remember_profile(project.results, project.profile.name, profile_choice.SMOKED)
    with prepare(project, python_here(project), show.progress) as stage:
        outcomes, lost = _judged(stage, _try_all(stage, wanted))
        _report(stage, outcomes, is_narrowed=bool(cells), as_json=as_json)
        if lost:
            show.say(
                _(
                    "no cell wrote {files}, though they wrote other artifacts. On a box, each "
                    "would fail after its whole training (NO-ART). Correct artifacts in job.yaml. "
                    "If only a longer run writes it, give smoke: flags that get that far",
                    files=some(lost, outcome.MOST_NAMED),
                )
            )
    return 0 if all(item.is_good for item in outcomes) else 1


def _refuse_without_words(project: Project, cells: Sequence[Cell]) -> None:
    if lacking := cell_faults.cells_without_smoke(project.job, [cell.name for cell in cells]):
        raise InputError(
            _(
                "{lacking}. Add your script's flags for that, such as: smoke: --limit-batches 2 "
                "--epochs 1",
                lacking=lacking,
            )
        )


def _wanted(project: Project, names: Sequence[str] | None, *, is_all: bool) -> list[Cell]:
    known = {cell.name: cell for cell in project.plan.cells}
    if chosen := pick(names or (), known, what="cell", of=the_run(project.plan.run)):
        return [known[name] for name in chosen]
    if not is_all:
        return passes.to_try(project)
    left_out = passes.skipped(project)
    return [cell for name, cell in known.items() if name not in left_out]


def _try_all(stage: Stage, cells: Sequence[Cell]) -> list[Outcome]:
    keys = passes.keys(stage.project, stage.files)
    asking = _asking(stage.project)
    ended: dict[str, Outcome] = {}
    outcomes = []
    _say_fewer_ranks(cells)
    with show.progress(_("smoke"), THINGS) as bar:
        part = bar.part(len(cells))
        for cell in cells:
            part.doing = cell.name
            key = keys[cell.name]
            if why := asking.get(cell.name):
                item = Outcome(cell.name, outcome.FAILED, why)
            elif key in ended:
                item = replace(ended[key], cell=cell.name, like=ended[key].cell)
            else:
                known = one_try.remembered(stage, cell, key)
                item = ended[key] = known or one_try.make_try(stage, cell, key)
            outcomes.append(item)
            part.add()
    return outcomes


def _asking(project: Project) -> dict[str, str]:
    """Why a cell would fail on its box though it passes here, where trackers are off; by name."""
    found = tracker_logins.lacking(project.root / project.job.code, project.plan)
    sure = {name: [one for one in each if one.tracker.asks] for name, each in found.items()}
    return {name: each[0].sentence for name, each in sure.items() if each}


def _judged(stage: Stage, outcomes: list[Outcome]) -> tuple[list[Outcome], Sequence[str]]:
    """Failed for what no cell wrote, although they wrote others; and what that is."""
    judged, lost = one_try.in_no_cell(stage.project.plan, outcomes)
    keys = passes.keys(stage.project, stage.files) if lost else {}
    for item in judged:
        if not item.is_good and item.cell in keys:
            passes.forget(stage.project.root, keys[item.cell])
    return judged, lost


def _say_fewer_ranks(cells: Sequence[Cell]) -> None:
    if any((cell.nproc or 1) * cell.nodes > passes.MOST_RANKS for cell in cells):
        show.say(_("cells with more ranks are tested with {n}", n=passes.MOST_RANKS))


# --- what is shown


def _report(stage: Stage, outcomes: Sequence[Outcome], *, is_narrowed: bool, as_json: bool) -> None:
    project, tried = stage.project, {item.cell for item in outcomes}
    untried = [] if is_narrowed else passes.untried(project, tried)
    skipped = {} if is_narrowed else passes.skipped(project)
    skipped = {name: reason for name, reason in skipped.items() if name not in tried}
    if as_json:
        about = {"run": project.plan.run, "cells": outcomes}
        show.json_document("smoke", about | {"skipped": skipped, "not_tried": untried})
    else:
        rows: list[tuple[object, ...]] = [
            (item.cell, _word(item), item.seconds, outcome.try_note(item)) for item in outcomes
        ]
        left_out = _("skipped")
        rows += [(name, left_out, None, reason) for name, reason in skipped.items()]
        if untried:
            more = _("{n} more", n=len(untried))
            note = _("one of each kind was tested; smoke --all tests each")
            rows.append((more, _("not tested"), None, note))
        show.table(
            _("smoke test of {run}", run=project.plan.run),
            ("cell", "result", "seconds", "note"),
            rows,
        )
    for group in _alike(stage, [item for item in outcomes if item.log and not item.is_good]):
        _say_failure(group)
    _say_lacking(outcomes)
    _say_reserved(outcomes)
    _say_numbers(project.plan.metrics, outcomes)
    _say_no_number(project.plan.metrics, outcomes)
    _say_next(stage.project, outcomes)


_RESULTS = (
    mark("passed"),
    mark("passed before"),
    mark("failed"),
    mark("timed out"),
    mark("skipped"),
)


def _word(item: Outcome) -> str:
    return known_word(item.word, _RESULTS)


def _say_next(project: Project, outcomes: Sequence[Outcome]) -> None:
    if bad := sum(not item.is_good for item in outcomes):
        failed = _(
            "{bad} of {n} {n:cell|cells} failed. Fix {bad:it|them}, then", bad=bad, n=len(outcomes)
        )
        show.say(Message(failed, Command("smoke")))
    elif finished := said_of_a_finished_run(project):
        show.say(finished)  # a launch would be refused
    else:
        site = open_site(project, show.say)
        then = before_launch(project, needs_audit=site.needs_audit)
        show.say(Message(_("Next"), then))


def _alike(stage: Stage, failed: Sequence[Outcome]) -> list[list[Outcome]]:
    """The failures that are one and the same, together."""
    known = {cell.name: cell for cell in stage.project.plan.cells}
    names = one_try.own_names(known[item.cell] for item in failed)
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for item in failed:
        folder = stage.out(item.like or item.cell).parent
        essence = one_try.log_essence(tail(Path(item.log or "")), folder, names)
        groups.setdefault((item.why, essence), []).append(item)
    return list(groups.values())


def _say_failure(group: Sequence[Outcome]) -> None:
    first = group[0]
    named = some([item.cell for item in group], _MOST_NAMED)
    show.say(
        _("--- {cells}: {why}. Last lines of {log}:", cells=named, why=first.why, log=first.log)
    )
    for line in tail(Path(first.log or "")):
        show.quote(f"  {line}")
    for hint in first.hints:
        show.say(hint)
    show.say(_("to reproduce: {command}", command=_in_a_script(first)))


def _in_a_script(failed: Outcome) -> str:
    """All its variables would fill a screen."""
    script = Path(failed.log or "").with_name("reproduce.sh")
    atomic.write_whole(script, f"{failed.by_hand}\n".encode(), mode=0o600)
    return shlex.join(["sh", str(script)])


def _say_lacking(outcomes: Sequence[Outcome]) -> None:
    """Not refused: two batches may not be enough for a best checkpoint."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for item in outcomes:
        if item.is_good and item.lacks:
            lacking.setdefault(item.lacks, []).append(item.cell)
    for names, cells in lacking.items():
        which = some(cells, outcome.MOST_NAMED)
        show.say(
            _(
                "not written in this short run: {files} ({cells}). A finished cell needs it: make "
                "sure that your script writes it to {{out}}",
                files=", ".join(names),
                cells=which,
            )
        )


def _say_reserved(outcomes: Sequence[Outcome]) -> None:
    names = sorted({name for item in outcomes if item.is_good for name in item.reserved})
    if names:
        show.say(
            _(
                "Boxcar uses the names {files} itself, so a box does not publish them. Rename "
                "them in your script; a cell whose artifact has nothing else fails",
                files=some(names, outcome.MOST_NAMED),
            )
        )


def _say_numbers(metrics: Sequence[Metric], outcomes: Sequence[Outcome]) -> None:
    """What each expression took, of one cell: a number beside the meant one is seen here."""
    for metric in metrics:
        having = [item for item in outcomes if metric.name in item.numbers]
        if having:
            found = having[0].numbers[metric.name]
            which = having[0].cell
            if more := len(having) - 1:
                which = _(
                    "{cell}; {n} more {n:cell has its|cells have their} own", cell=which, n=more
                )
            about = {"name": metric.name, "value": units.four_digits(found.value), "cells": which}
            if metric.source == LOG:
                show.say(
                    _(
                        "{name} = {value}, from this line of the log: {line} ({cells})",
                        **about,
                        line=found.where,
                    )
                )
            else:
                where = _(
                    "{name} = {value}, from {where} in {file} ({cells})",
                    **about,
                    file=metric.of,
                    where=found.where,
                )
                show.say(where)


def _say_no_number(metrics: Sequence[Metric], outcomes: Sequence[Outcome]) -> None:
    """Not refused either, but nobody else says it before a result is verified."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for item in outcomes:
        for name, why in item.no_number.items():
            lacking.setdefault((name, why), []).append(item.cell)
    patterns = {metric.name: metric.of for metric in metrics}
    for (name, why), cells in lacking.items():
        which, of = some(cells, outcome.MOST_NAMED), patterns.get(name, "")
        is_no_match = why == f"the log: {read.NOTHING}"
        said = _("nothing in the log matches {of}", of=of) if is_no_match else why
        show.say(_("{name}: {why} ({cells})", name=name, why=said, cells=which))
