"""What the laptop has proven of this queue's cells: taken as it is, at every look for a next cell.

Of a result that was lent no event tells how its cell was started, as the box that ran it is lost:
what its manifest says of that is said with it.

A document that cannot be read is doubt: its cell is neither begun again, because what is published
may have been proven, nor called verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from boxcar.shared.cell import begun, saying
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import accepted, cell_claim, manifest
from boxcar.shared.files.accepted import Accepted
from boxcar.shared.state import Verified
from onbox.agent.queue.put_right import PutRight
from onbox.agent.reporter import Reporter
from onbox.agent.settler import Settler
from onbox.place import Place


class Acceptance:
    """`doubts` are why a cell can neither be begun nor be called verified, as of the last look.

    `saying_of` is what a line asks for by the agent's own release.
    """

    def __init__(
        self,
        place: Place,
        reporter: Reporter,
        settler: Settler,
        saying_of: Callable[[CellLine], str | None],
    ) -> None:
        self._place = place
        self._reporter = reporter
        self._settler = settler
        self._saying_of = saying_of
        self._put_right = PutRight(place, reporter, settler, saying_of)
        self.doubts: dict[str, str] = {}

    def take(self, lines: Iterable[CellLine]) -> bool:
        """Say of each cell that was accepted since the last look that it is verified, and have
        judged anew what job.yaml puts right; whether there was one. `lines` are the queue's.
        """
        self.doubts, has_taken = {}, self._put_right.take(lines)
        for path in sorted(self._place.durable.accepted_folder.glob("*.json")):
            if self._may_be_taken(path.stem) and (found := self._read(path.stem)):
                ran_as = self._ran_as(path.stem, lines) if found.is_lent else {}
                self._settler.take_accepted(path.stem, found, ran_as)
                has_taken = True
        return has_taken

    def _ran_as(self, cell: str, lines: Iterable[CellLine]) -> dict[str, Any]:
        """The fields of `cell.started`, as far as they are known. A line that asks for the same is
        the one that was run, with what the manifest does not say.
        """
        made = manifest.read(self._place.durable.manifest(cell))
        said = {"cfg": made.cfg, "epochs": made.epochs, "saying": made.saying}
        said |= {"release": made.release, "is_lent": True}
        line = next((one for one in lines if one.name == cell), None)
        if line and not saying.differ(self._saying_of(line), made.saying):
            return begun.data(line) | said
        return {"task": made.task, "overrides": list(made.overrides) or None, **said}

    def _may_be_taken(self, cell: str) -> bool:
        """Whether it is this queue's, and nothing is known or being found out of its result."""
        is_verified = isinstance(self._reporter.record(cell).state, Verified)
        if is_verified or self._settler.is_at(cell):
            return False
        try:
            claim = cell_claim.read(self._place.durable.claim(cell))
        except DamagedError:
            return False  # said where the cell is claimed
        return claim is not None and claim.queue == self._place.queue

    def _read(self, cell: str) -> Accepted | None:
        try:
            return accepted.of_result(self._place.durable, cell)
        except DamagedError as error:
            self.doubts[cell] = f"{cell} is not begun again: {error}"
            self._reporter.warn("accepted_damaged", self.doubts[cell], cell)
            return None
