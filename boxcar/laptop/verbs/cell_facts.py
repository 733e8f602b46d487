"""What lies here of each cell, compared behind a bar: what verify judges and the gate asks."""

from __future__ import annotations

from boxcar.laptop.common import show
from boxcar.laptop.results import (
    compare,
)
from boxcar.laptop.results.compare import CompareOne
from boxcar.laptop.results.judge import CellFacts
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.view import RunView
from boxcar.laptop.sites.site import Site
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.files import manifest


def cell_facts(
    site: Site, view: RunView, compare_one: CompareOne = manifest.compare_one
) -> list[CellFacts]:
    """The facts of each cell of the roster, every pulled file compared by `compare_one` behind a
    bar: hashed anew, unless that is another's.
    """
    for queue in view.queues:
        if queue.state is None:
            for problem in queue.problems:
                show.say(problem)
    cells = view.roster.cells
    with show.progress(Sentence("how_far.hashing")) as bar:
        part = bar.part(sum(compare.size_bytes(site, cell.name) for cell in cells))

        def begun(cell: str) -> None:
            part.doing = cell

        return compare.gather(
            site,
            cells,
            view.failed,
            view.damaged,
            at_work=[queue.name for queue in view.queues if may_run(queue)],
            on_file=part.add,
            on_cell=begun,
            compare_one=compare_one,
        )
