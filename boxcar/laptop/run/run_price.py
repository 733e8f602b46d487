"""What the whole run would cost on an offer, at the speed that its cells had on the same GPUs.

Only on the same: no speed is guessed from another card's, or from another number of them. A cell
counts by the manifest and the journal of its result here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from boxcar.laptop.project import resources
from boxcar.laptop.project.cells_at_once import cells_at_once
from boxcar.laptop.project.queues import cell_cost
from boxcar.laptop.project.queues.cell_cost import SECONDS, Sample
from boxcar.laptop.providers.provider import Offer
from boxcar.laptop.run.run_cost import HOUR_S, Range, spread_of
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import journal
from boxcar.shared.files.manifest import read_manifest
from boxcar.shared.files.plan import Plan
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _


@dataclass(frozen=True)
class Timed:
    """A cell that ended well, on `gpus` cards of the name `gpu`, as its driver spells it."""

    sample: Sample
    gpu: str
    gpus: int


def timed_cells(root: Path, say: Callable[[str], None]) -> list[Timed]:
    """Of all results of the project in `root`. What cannot be read is said, and left out."""
    found: list[Timed] = []
    for path in sorted((root / "results").glob("*/journal/*.jsonl")):
        try:
            samples = cell_cost.samples(journal.read_journal(path).events)
        except (DamagedError, OSError, KeyError, TypeError) as error:
            say(_("{file}: skipped: {error}", file=path, error=error))
            continue
        results = ResultPaths(path.parents[2], path.parents[1].name)
        found += [timed for sample in samples for timed in _timed(results, sample)]
    return found


def _timed(results: ResultPaths, sample: Sample) -> Iterator[Timed]:
    try:
        on = read_manifest(results.manifest(sample.cell)).trained_on
    except (DamagedError, OSError):
        return
    names = {gpu.name for gpu in on.gpus} if on else set()
    # One that shared its cards with others says nothing of the cards.
    if on and len(names) == 1 and not on.beside:
        yield Timed(sample, names.pop(), len(on.gpus))


def price_on(offer: Offer, plan: Plan, timed: Sequence[Timed]) -> Range | None:
    """In the offer's currency, of all cells of the plan on boxes of this kind; None where none of
    them was timed on the same cards.
    """
    at_once = cells_at_once(plan, offer.gpus)
    a_cell = plan.gpus_per_cell or offer.gpus
    if not at_once or (plan.slots and not plan.gpus_per_cell):
        return None
    like = [
        one.sample
        for one in timed
        if one.gpus == a_cell and resources.is_family(offer.gpu, one.gpu)
    ]
    costs, unit = cell_cost.costs_of_cells(plan.cells, like, {}, {})
    if unit != SECONDS:
        return None
    low, high, samples = spread_of((one.task, one.seconds / one.epochs) for one in like)
    amount = offer.rate * sum(one.amount for one in costs.values()) / HOUR_S / at_once
    return Range(low * amount, high * amount, samples)
