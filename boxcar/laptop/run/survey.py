"""The union of all that names a cell of the run, with all that is doubtful about it.

It never comes from the results that happen to be here. A source that cannot be read is a doubt, and
with a doubt nothing is torn down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from boxcar.laptop.run import roster, roster_sources
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import Asked, Roster, RosterCell, joined, merged

# By queue the cells that its journal tells of; None for one that cannot be read.
Journals = Mapping[str, Sequence[RosterCell] | None]


def survey(run: OpenRun, journals: Journals) -> Roster:
    """The roster. Raises nothing for a file that is damaged."""
    tier = run.tier
    asked = _asked(run, journals)
    found = joined(asked.roster, roster_sources.of_claims(tier.claims, asked.roster.names))
    there = roster_sources.names_in(tier.cells)
    found = joined(found, roster_sources.of_published(tier.cells, found.names, there))
    found = roster.judge_dropped(run, found, asked.lineless)
    return joined(found, _strays(run, found, there))


def _asked(run: OpenRun, journals: Journals) -> Asked:
    """By plans, lines and journals: by their bytes alone."""
    tier = run.tier
    plans = [*_of_plans(run)]
    said = merged(roster_sources.of_queues(tier.queues))
    lines = roster_sources.unplanned(said, plans, run.plan.epochs)
    begun = merged(
        roster_sources.of_journal(tier.journal(queue), cells) for queue, cells in journals.items()
    )
    otherwise = roster_sources.of_differences(plans, said, begun)
    found = merged([*plans, lines, begun, otherwise])
    open_names = found.names - said.names - begun.names
    lineless = tuple(cell for cell in found.cells if cell.name in open_names) if open_names else ()
    return Asked(found, lineless, roster_sources.unlike(found, plans, said))


def _of_plans(run: OpenRun) -> Iterator[Roster]:
    yield roster_sources.of_plan(run.plan, is_newest=True)
    yield roster_sources.of_local_files(run.project.doubts)
    yield from roster_sources.of_releases(run.tier.releases)
    if not run.tier.root.exists():
        yield roster_sources.of_receipt(run.results.receipt)


def _strays(run: OpenRun, found: Roster, there: Set[str] | None) -> Iterator[Roster]:
    """Folders that no cell of the roster owns; `there` are those on the tier."""

    def stray(folder: Path) -> Roster:
        return Roster(notes=(f"{folder} is of no cell of this run",), strays=(folder,))

    yield from roster_sources.each(run.tier.cells, stray, found.names, there=there)
    yield from roster_sources.each(run.results.cells, stray, found.names)
