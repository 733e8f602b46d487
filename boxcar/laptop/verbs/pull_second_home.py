"""What became of cells that could not be had, and that the second home may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boxcar.laptop.common import show
from boxcar.laptop.results import bring_from_second_home
from boxcar.laptop.results.bring_from_second_home import Lying
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.sites.site import Site
from boxcar.laptop.verbs.pull_cells import lacks
from boxcar.laptop.verbs.pull_outcome import FAILED, NOT_PUBLISHED, PULLED, Outcome
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import BoxcarError, message_of
from boxcar.shared.message import Command, Message


def pull_second_home(site: Site, view: RunView, outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """By cell, what became of those that could not be had and may be there; mostly none."""
    lacking = [one for one in outcomes if one.word in (NOT_PUBLISHED, FAILED)]
    if not lacking or not bring_from_second_home.is_needed(site):
        return {}
    cells = {cell.name: cell for cell in view.cells}
    with show.waiting(Sentence("how_far.second_home", url=site.plan.second)):
        try:
            found = bring_from_second_home.look(site, [one.name for one in lacking])
        except (BoxcarError, OSError) as error:
            why = f"the second home was not looked into: {show.typed(message_of(error))}"
            return {one.name: replace(one, word=FAILED, why=why) for one in lacking}
        return {
            one.name: _brought(site, cells[one.name], found[one.name], one)
            for one in lacking
            if one.name in found
        }


def _brought(site: Site, cell: CellView, lying: Lying, before: Outcome) -> Outcome:
    """What became of a cell of which the second home has something."""
    second = site.plan.second
    if lying.problem:
        return Outcome(cell.name, FAILED, f"{second}: {lying.problem}")
    try:
        if wanted := lying.published:
            aside = bring_from_second_home.bring_result(site, cell, wanted)
            replaced = str(aside) if aside else None
            why, left = Sentence("bring.from_second", url=second), lacks(site, wanted)
            made = wanted.manifest
            return Outcome(cell.name, PULLED, why, made.size_bytes, replaced, left, made.doubt)
        pointer = lying.pointer
        if pointer and bring_from_second_home.bring_live_checkpoint(site, cell, pointer):
            about = {"cell": cell.name, "at": pointer.at, "url": second}
            show.say(Message(Sentence("bring.checkpoint_came", **about), Command("launch")))
    except (BoxcarError, OSError) as error:
        return Outcome(cell.name, FAILED, show.typed(message_of(error)))
    return before
