"""`invoke pull`: every published cell to the laptop, each file compared with its manifest.

What is already here and right is not fetched again, and a copy that gives way is kept in
`replaced/`. Killed at any point and run again, it ends right. The journals come along: after the
teardown they lie nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.hosts import folders
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import launches
from boxcar.laptop.project.project import Project
from boxcar.laptop.results import results_folder, second_home
from boxcar.laptop.results.failed_logs import BroughtLog, pull_failed_logs
from boxcar.laptop.results.second_home import Lying
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.roster import Roster, RosterCell
from boxcar.laptop.run.view import ABANDONED, CellView, RunView
from boxcar.laptop.verbs.next_step import is_settled, next_step
from boxcar.laptop.verbs.pull_cells import (
    FAILED,
    HERE,
    NOT_PUBLISHED,
    PULLED,
    Outcome,
    lacks_cells,
    pull_cells,
)
from boxcar.laptop.verbs.pull_journals import pull_gauges, pull_journals
from boxcar.shared import timestamp
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    Message,
    TemporaryError,
    message_of,
    some,
)
from boxcar.shared.sentence import _
from boxcar.shared.state import Succeeded, Synced

MOST_NAMED = 5


def pull(
    project: Project,
    *,
    cells: Sequence[str] | None = None,
    most_kib_s: int = 0,
    source: str = "",
    as_json: bool = False,
) -> int:
    """Bring the results here, or only those of `cells`; of a platform without ssh from `source`,
    the folder that a person downloaded.

    Returns 1 where something that is published could not be pulled right, or one of `cells` is not
    published; what else is not published yet is for `status` and `verify` to judge. Raises
    InputError for an unknown cell, and where the tier or rsync is missing.
    """
    with open_site(project, show.say) as site:
        if source:
            with show.waiting(_("taking over {folder}", folder=source)):
                site.bring(Path(source))
        folders.check_rsync(show.say, most_kib_s=most_kib_s)
        with show.waiting(_("asking the boxes")):
            site.refresh()
        _check_tier(site)
        view = look_at_run(site, timestamp.utc_now())
        wanted = _wanted(site.plan.run, view.roster, cells)
        said = (*view.roster.sentences, *map(Message, site.doubts()))
        show.say_of_each(("", one) for one in said)
        with results_folder.hold(site) as held:
            with show.progress(_("pull")) as bar:
                outcomes = pull_cells(site, view, wanted, held, bar, most_kib_s=most_kib_s)
                journals = pull_journals(site)
                pull_gauges(site)
            copies = _pull_second_home(site, view, outcomes)
            outcomes = [copies.get(one.name, one) for one in outcomes]
            missing = {one.name for one in outcomes if one.word not in (HERE, PULLED)}
            with show.waiting(_("fetching the logs of failed cells")):
                logs = _pull_failed_logs(site, view, missing)
        # Not above: a bar that is drawn leaves its line behind.
        show.say_of_each((log.cell, _said_of(log)) for log in logs)
        given_up = {one.name for one in view.of_words((ABANDONED,))}
        unsaid = given_up & {one.name for one in outcomes if one.word == NOT_PUBLISHED}
        told = [one for one in outcomes if one.name not in unsaid]
        _report(told, journals, {log.cell for log in logs})
        show.say(_next(site, view, told, journals))
        if as_json:
            results = {"run": site.plan.run, "results": str(site.results.root)}
            show.json_document("pull", results | {"cells": outcomes, "journals": journals})
        is_asked_for = cells and missing
        all_outcomes = (*outcomes, *journals)
        has_failed = any(outcome.word == FAILED or outcome.lacks for outcome in all_outcomes)
        return 1 if has_failed or is_asked_for else 0


def _check_tier(site: Site) -> None:
    if site.tier.root.is_dir() or second_home.is_needed(site):
        return
    if results_folder.is_torn_down(site.results):
        raise InputError(
            _(
                "nothing to pull: the run was torn down, and its results are here ({folder})",
                folder=site.results.root,
            )
        )
    if site.silent_boxes() and (doubts := site.doubts()):
        raise TemporaryError(_("nothing to pull: {why}", why=doubts[0]), Command("pull"))
    tier = site.plan.durable_dir
    if (site.results.root / launches.LAUNCHES).exists():
        not_there = _("nothing to pull: the durable tier ({tier}) is not mounted", tier=tier)
        raise InputError(not_there, Command("pull"))
    raise InputError(
        _(
            "nothing to pull: the run was never launched from this machine, and its durable tier "
            "({tier}) is not here",
            tier=tier,
        ),
        Command("launch"),
    )


def _wanted(run: str, found: Roster, names: Sequence[str] | None) -> list[RosterCell]:
    """Of a cell that was dropped there will be nothing, unless somebody asks for it by name."""
    known = [cell.name for cell in found.cells]
    if chosen := frozenset(pick(names or (), known, what="cell", of=the_run(run))):
        return [cell for cell in found.cells if cell.name in chosen]
    if dropped := [cell.name for cell in found.cells if cell.is_dropped]:
        show.say(_("dropped, so not pulled: {cells}", cells=some(dropped, MOST_NAMED)))
    return [cell for cell in found.cells if not cell.is_dropped]


def _still_checked(view: RunView) -> list[str]:
    """The cells whose boxes are about to say whether what they published loads."""
    at_work = {queue.name for queue in view.queues if may_run(queue)}
    checked = (Succeeded.word, Synced.word)
    return [cell.name for cell in view.cells if cell.word in checked and cell.queue in at_work]


def _pull_failed_logs(site: Site, view: RunView, cells: Collection[str]) -> list[BroughtLog]:
    failed = [cell for cell in view.cells if cell.name in view.failed and cell.name in cells]
    return pull_failed_logs(site, failed)


def _pull_second_home(site: Site, view: RunView, outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """By cell, what became of those that could not be had and may be there; mostly none."""
    lacking = [one for one in outcomes if one.word in (NOT_PUBLISHED, FAILED)]
    if not lacking or not second_home.is_needed(site):
        return {}
    cells = {cell.name: cell for cell in view.cells}
    with show.waiting(_("checking the second copy at {url}", url=site.plan.second)):
        try:
            found = second_home.look_into_second_home(site, [one.name for one in lacking])
        except (BoxcarError, OSError) as error:
            why = _(
                "the second copy could not be checked: {show}", show=show.typed(message_of(error))
            )
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
            why, left = _("from the second copy at {url}", url=second), lacks_cells(site, wanted)
            made = wanted.manifest
            return Outcome(cell.name, PULLED, why, made.size_bytes, replaced, left, made.doubt)
        pointer = lying.pointer
        if pointer and second_home.bring_live_checkpoint(site, cell, pointer):
            about = {"cell": cell.name, "at": pointer.at, "url": second}
            show.say(
                Message(
                    _(
                        "{cell}: pulled its checkpoint of {at} from the second copy at {url}. Next",
                        **about,
                    ),
                    Command("launch"),
                )
            )
    except (BoxcarError, OSError) as error:
        return Outcome(cell.name, FAILED, show.typed(message_of(error)))
    return before


def _said_of(log: BroughtLog) -> str:
    if log.path is None:
        return _("failed; its log could not be pulled: {why}", why=log.problem)
    return _("failed; {cells:its log|their logs, such as}: {file}", file=log.path, cells=1)


def _notes_of(outcome: Outcome) -> Iterator[str]:
    if outcome.replaced:
        yield _("the earlier copy was moved to {folder}", folder=outcome.replaced)
    if outcome.word == PULLED and outcome.why:
        yield _("pulled {why}", why=outcome.why)
    if outcome.lacks:
        names, n = some(outcome.lacks, MOST_NAMED), len(outcome.lacks)
        yield _("{n:,} extra {n:file|files} missing or not as published: {names}", n=n, names=names)
    if outcome.doubt:
        yield _("not certain: {doubt}", doubt=outcome.doubt)


def _next(
    site: Site, view: RunView, outcomes: Sequence[Outcome], journals: Sequence[Outcome]
) -> Message:
    """How much is here, and what to type."""
    there = {one.name for one in outcomes if one.word in (HERE, PULLED)}
    here_now = _(
        "{here} of {n} {n:cell|cells} here: {folder}",
        here=len(there),
        n=len(outcomes),
        folder=site.results.root,
    )
    has_failed = any(one.word == FAILED for one in (*outcomes, *journals))
    checked = [name for name in _still_checked(view) if name in there]
    wanted = {one.name for one in outcomes} - there
    failed = sorted(wanted & {cell.name for cell in view.of_words(("failed",))})
    if not (wanted or has_failed or checked):
        proven = next_step(view, site).command if is_settled(view, site) else None
        then = proven or Command("verify")
        return Message(_("{here}. Next", here=here_now), then)
    if not (wanted or has_failed):
        names = some(checked, MOST_NAMED)
        said = _(
            "{here}; {n} {n:is still being checked by its box|are still being checked by their "
            "boxes}: {cells}. In a moment",
            here=here_now,
            n=len(checked),
            cells=names,
        )
        return Message(said, Command("pull"))
    if failed:
        explain = Command("explain", ("--cell", failed[0]))
        return Message(
            _("{here}; {n} {n:cell|cells} failed. Why", here=here_now, n=len(failed)), explain
        )
    if has_failed:
        return Message(here_now)
    return Message(
        _("{here}; the others are not published yet. To see why", here=here_now), Command("status")
    )


def _by_reason(outcomes: Iterable[Outcome]) -> dict[str | None, list[str]]:
    """What was not pulled: one reason may be that of hundreds."""
    found: dict[str | None, list[str]] = {}
    for one in outcomes:
        if one.word == FAILED:
            found.setdefault(one.why, []).append(one.name)
    return found


def _report(
    outcomes: Sequence[Outcome], journals: Sequence[Outcome], failed: Collection[str]
) -> None:
    """`failed`: of these it was said already."""
    everything = (*outcomes, *journals)
    show.say_of_each((one.name, note) for one in everything for note in _notes_of(one))
    for why, names in _by_reason(everything).items():
        name = some(names, MOST_NAMED)
        show.say(_("{name} {n:was|were} not pulled: {why}", name=name, n=len(names), why=why))
    missing = [outcome.name for outcome in outcomes if outcome.word == NOT_PUBLISHED]
    if missing := [name for name in missing if name not in failed]:
        show.say(_("not published yet: {cells}", cells=show.listed(missing)))
