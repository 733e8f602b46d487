"""What was published since, pulled while somebody watches."""

from __future__ import annotations

import os

from boxcar.laptop.common import show
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.results import results_folder
from boxcar.laptop.run.roster import RosterCell
from boxcar.laptop.run.view import RunView
from boxcar.laptop.sites.site import Site
from boxcar.laptop.verbs.pull import pull_cells, pull_journals
from boxcar.shared import paths
from boxcar.shared.catalogue.sentence import Sentence


def pull_new(site: Site, view: RunView) -> None:
    """Pull what was published since, silently where there is nothing: `watch` calls it.

    Where no durable tier outlives the box, results are safe only here.
    """
    cells = [cell for cell in view.roster.cells if _is_new(site, cell)]
    if not cells:
        return
    with results_folder.hold(site) as held:
        # Shown by nobody: the board of watch is on the screen already.
        for outcome in pull_cells(site, view, cells, held, Progress("")):
            which = "outcome_why" if outcome.why else "outcome"
            about = {"name": outcome.name, "word": outcome.word, "why": outcome.why}
            show.say(Sentence(f"bring.{which}", **about))
        pull_journals(site)


def _is_new(site: Site, cell: RosterCell) -> bool:
    try:
        there = site.tier.receipt(cell.name).read_bytes()
        return (site.results.cell(cell.name) / paths.RECEIPT).read_bytes() != there
    except OSError:
        # Verified cells only: the box may still publish a better result of an unverified one.
        # A Path raises for one that may not be looked at.
        return os.path.exists(site.tier.receipt(cell.name))  # noqa: PTH110
