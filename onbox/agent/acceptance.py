"""What the laptop has proven of this queue's cells: taken as it is, at every look for a next cell.

A document that cannot be read is doubt: its cell is neither begun again, because what is published
may have been proven, nor called verified.
"""

from __future__ import annotations

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import accepted, cell_claim
from boxcar.shared.files.accepted import Accepted
from boxcar.shared.state import Verified
from onbox.agent.reporter import Reporter
from onbox.agent.settler import Settler
from onbox.place import Place


class Acceptance:
    """`doubts` are why a cell can neither be begun nor be called verified, as of the last look."""

    def __init__(self, place: Place, reporter: Reporter, settler: Settler) -> None:
        self._place = place
        self._reporter = reporter
        self._settler = settler
        self.doubts: dict[str, str] = {}

    def take(self) -> None:
        """Say of each cell that was accepted since the last look that it is verified."""
        self.doubts = {}
        for path in sorted(self._place.durable.accepted_folder.glob("*.json")):
            if self._may_be_taken(path.stem) and (found := self._read(path.stem)):
                self._settler.take_accepted(path.stem, found)

    def _may_be_taken(self, cell: str) -> bool:
        """Whether it is this queue's, and nothing is known or being found out of its result."""
        is_verified = isinstance(self._reporter.state().cell(cell).state, Verified)
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
