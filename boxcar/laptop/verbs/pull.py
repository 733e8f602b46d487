"""`invoke pull`: every published cell to the laptop, each file compared with its manifest.

What is already here and right is not fetched again, and a copy that gives way is kept in
`replaced/`. Killed at any point and run again, it ends right. The journals come along: after the
teardown they lie nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from boxcar.laptop.common import show
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.project.project import Project
from boxcar.laptop.results import bring_cell, results_folder, second_home
from boxcar.laptop.results.bring_cell import BroughtLog
from boxcar.laptop.results.second_home import Lying
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.roster import Roster, RosterCell
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.sites.open_site import open_site
from boxcar.laptop.sites.site import Site
from boxcar.laptop.transfer import folders
from boxcar.laptop.verbs.pull_cells import lacks_cells, pull_cells
from boxcar.laptop.verbs.pull_journals import pull_journals
from boxcar.laptop.verbs.pull_outcome import FAILED, HERE, NOT_PUBLISHED, PULLED, Outcome
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import BoxcarError, InputError, message_of
from boxcar.shared.message import Command, Message, some
from boxcar.shared.state import Succeeded, Synced

MOST_NAMED = 5


def pull(project: Project, *, cells: Sequence[str] | None = None, as_json: bool = False) -> int:
    """Bring the results here, or only those of `cells`.

    Returns 1 where something that is published could not be pulled right, or one of `cells` is not
    published; what else is not published yet is for `status` and `verify` to judge. Raises
    InputError for an unknown cell, and where the tier or rsync is missing.
    """
    with open_site(project, show.say) as site:
        folders.check_rsync(show.say)
        with show.waiting(Sentence("how_far.asking")):
            site.boxes.refresh()
        _check_tier(site)
        view = look_at_run(site, timestamp.utc_now())
        wanted = _wanted(site.plan.run, view.roster, cells)
        for sentence in (*view.roster.sentences, *map(Message, site.boxes.doubts())):
            show.say(sentence)
        with results_folder.hold(site) as held:
            with show.progress(Sentence("how_far.pull")) as bar:
                outcomes = pull_cells(site, view, wanted, held, bar)
                journals = pull_journals(site)
            copies = _pull_second_home(site, view, outcomes)
            outcomes = [copies.get(one.name, one) for one in outcomes]
            missing = {one.name for one in outcomes if one.word not in (HERE, PULLED)}
            logs = _pull_failed_logs(site, view, missing)
        for log in logs:  # not above: a bar that is drawn leaves its line behind
            show.say(_said_of(log))
        failed = [name for name in sorted(missing) if name in view.failed]
        checked = [name for name in _still_checked(view) if name not in missing]
        _report(site, outcomes, journals, failed, checked, as_json=as_json)
        is_asked_for = cells and missing
        all_outcomes = (*outcomes, *journals)
        has_failed = any(outcome.word == FAILED or outcome.lacks for outcome in all_outcomes)
        return 1 if has_failed or is_asked_for else 0


def _check_tier(site: Site) -> None:
    if site.tier.root.is_dir() or second_home.is_needed(site):
        return
    if results_folder.is_torn_down(site.results):
        raise InputError(Sentence("mistakes.pulled_and_gone", folder=site.results.root))
    raise InputError(
        Sentence("mistakes.nothing_to_pull", tier=site.plan.durable_dir),
        Command("launch"),
    )


def _wanted(run: str, found: Roster, names: Sequence[str] | None) -> list[RosterCell]:
    """Of a cell that was dropped there will be nothing, unless somebody asks for it by name."""
    known = [cell.name for cell in found.cells]
    if chosen := frozenset(pick(names or (), known, what="cell", of=the_run(run))):
        return [cell for cell in found.cells if cell.name in chosen]
    if dropped := [cell.name for cell in found.cells if cell.is_dropped]:
        show.say(Sentence("bring.dropped", cells=some(dropped, MOST_NAMED)))
    return [cell for cell in found.cells if not cell.is_dropped]


def _still_checked(view: RunView) -> list[str]:
    """The cells whose boxes are about to say whether what they published loads."""
    at_work = {queue.name for queue in view.queues if may_run(queue)}
    checked = (Succeeded.word, Synced.word)
    return [cell.name for cell in view.cells if cell.word in checked and cell.queue in at_work]


def _pull_failed_logs(site: Site, view: RunView, cells: Collection[str]) -> list[BroughtLog]:
    failed = [cell for cell in view.cells if cell.name in view.failed and cell.name in cells]
    return bring_cell.pull_failed_logs(site, failed)


def _pull_second_home(site: Site, view: RunView, outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """By cell, what became of those that could not be had and may be there; mostly none."""
    lacking = [one for one in outcomes if one.word in (NOT_PUBLISHED, FAILED)]
    if not lacking or not second_home.is_needed(site):
        return {}
    cells = {cell.name: cell for cell in view.cells}
    with show.waiting(Sentence("how_far.second_home", url=site.plan.second)):
        try:
            found = second_home.look(site, [one.name for one in lacking])
        except (BoxcarError, OSError) as error:
            why = f"the second home was not looked into: {show.typed(message_of(error))}"
            return {one.name: replace(one, word=FAILED, why=why) for one in lacking}
        return {
            one.name: _from_second(site, cells[one.name], found[one.name], one)
            for one in lacking
            if one.name in found
        }


def _from_second(site: Site, cell: CellView, lying: Lying, before: Outcome) -> Outcome:
    """What became of a cell of which the second home has something."""
    second = site.plan.second
    if lying.problem:
        return Outcome(cell.name, FAILED, f"{second}: {lying.problem}")
    try:
        if wanted := lying.published:
            aside = second_home.bring_result(site, cell, wanted)
            replaced = str(aside) if aside else None
            why, left = Sentence("bring.from_second", url=second), lacks_cells(site, wanted)
            made = wanted.manifest
            return Outcome(cell.name, PULLED, why, made.size_bytes, replaced, left, made.doubt)
        pointer = lying.pointer
        if pointer and second_home.bring_live_checkpoint(site, cell, pointer):
            about = {"cell": cell.name, "at": pointer.at, "url": second}
            show.say(Message(Sentence("bring.checkpoint_came", **about), Command("launch")))
    except (BoxcarError, OSError) as error:
        return Outcome(cell.name, FAILED, show.typed(message_of(error)))
    return before


def _said_of(log: BroughtLog) -> str:
    if log.path is None:
        return Sentence("bring.no_failed_log", cell=log.cell, why=log.problem)
    return Sentence("bring.failed_log", cell=log.cell, file=log.path)


def _say_outcome(outcome: Outcome) -> None:
    name = outcome.name
    if outcome.replaced:
        show.say(Sentence("bring.is_aside", name=name, folder=outcome.replaced))
    if outcome.word == PULLED and outcome.why:
        show.say(Sentence("bring.came", name=name, why=outcome.why))
    if outcome.lacks:
        names, n = some(outcome.lacks, MOST_NAMED), len(outcome.lacks)
        show.say(Sentence("good_run.not_come", cell=name, n=n, names=names))
    if outcome.doubt:
        show.say(Sentence("looks.cell_in_doubt", cell=name, doubt=outcome.doubt))


def _next(
    site: Site,
    outcomes: Sequence[Outcome],
    journals: Sequence[Outcome],
    failed: Sequence[str],
    checked: Sequence[str],
) -> Message:
    """How much is here, and what to type."""
    here, n = sum(one.word in (HERE, PULLED) for one in outcomes), len(outcomes)
    here_now = Sentence("good_run.here", here=here, n=n, folder=site.results.root)
    has_failed = [one for one in (*outcomes, *journals) if one.word == FAILED]
    if here == n and not has_failed and checked:
        cells = some(checked, MOST_NAMED)
        said = Sentence("bring.here_unchecked", here=here_now, n=len(checked), cells=cells)
        return Message(said, Command("pull"))
    if here == n and not has_failed:
        return Message(Sentence("good_run.here_next", here=here_now), Command("verify"))
    if failed:
        explain = Command("explain", ("--cell", failed[0]))
        return Message(Sentence("bring.here_failed", here=here_now, n=len(failed)), explain)
    if has_failed:
        return Message(here_now)
    return Message(Sentence("bring.here_rest", here=here_now), Command("status"))


def _by_reason(outcomes: Iterable[Outcome]) -> dict[str | None, list[str]]:
    """What was not pulled: one reason may be that of hundreds."""
    found: dict[str | None, list[str]] = {}
    for one in outcomes:
        if one.word == FAILED:
            found.setdefault(one.why, []).append(one.name)
    return found


def _report(
    site: Site,
    outcomes: Sequence[Outcome],
    journals: Sequence[Outcome],
    failed: Sequence[str],
    checked: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """`failed` are the cells of which there is nothing to pull, `checked` those whose boxes still
    look into what they have published.
    """
    everything = (*outcomes, *journals)
    for outcome in everything:
        _say_outcome(outcome)
    for why, names in _by_reason(everything).items():
        name = some(names, MOST_NAMED)
        show.say(Sentence("bring.not_pulled", name=name, n=len(names), why=why))
    if missing := [outcome.name for outcome in outcomes if outcome.word == NOT_PUBLISHED]:
        show.say(Sentence("good_run.not_published", cells=", ".join(missing)))
    show.say(_next(site, outcomes, journals, failed, checked))
    if as_json:
        show.json_document(
            "pull",
            {
                "run": site.plan.run,
                "results": str(site.results.root),
                "cells": outcomes,
                "journals": journals,
            },
        )
