"""The lines of a queue that may still be run: no look for the next cell walks over all that are
through, which of 100,000 would take as long as a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.files.queue_line import Queue

# After so many more that are through, they are left out.
EVERY = 100


class OpenLines:
    """`is_through` says of a line that nothing opens it again, `has_config` whether the agent's own
    release has what it needs.

    As of the last look: `lines`, some of which may be through by now; `foreign`, those of them
    without a config; `has_after`, whether one waits for another.
    """

    def __init__(
        self, is_through: Callable[[CellLine], bool], has_config: Callable[[CellLine], bool]
    ) -> None:
        self._is_through, self._has_config = is_through, has_config
        self._queue, self._seen, self._through = Queue(), 0, 0
        self.lines: Sequence[CellLine] = ()
        self.foreign: Sequence[CellLine] = ()
        self.has_after = False

    def look(self, queue: Queue, through: int) -> None:
        """`through`: how many cells of the queue have come to a good end so far."""
        cells = len(queue.cells)
        is_known = queue is self._queue and cells == self._seen
        if is_known and through - self._through < EVERY:
            return
        # What was left of the lines that were there, and those that were added.
        known = [*self.lines, *queue.cells[self._seen :]] if queue is self._queue else queue.cells
        self.lines = [line for line in known if not self._is_through(line)]
        self.foreign = [line for line in self.lines if not self._has_config(line)]
        self.has_after = any(line.own.after for line in self.lines)
        self._queue, self._seen, self._through = queue, cells, through
