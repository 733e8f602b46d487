"""The logs of cells that failed: they are no results, and with the box they would be gone.

`pull` brings the end of each into `results/<run>/failed/`. Nobody's verdict depends on them, so one
that cannot be had holds up nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import CellView
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, words_of
from boxcar.shared.record import dataclass
from boxcar.shared.wire import run_asks

MOST_BYTES = 8 * 1024 * 1024
MOST_LINES = 100_000


@dataclass(frozen=True)
class BroughtLog:
    """Where the log of a failed cell lies now, or why it could not be brought here."""

    cell: str
    path: Path | None
    problem: str = ""


def pull_failed_logs(run: OpenRun, cells: Iterable[CellView]) -> list[BroughtLog]:
    """Bring the log of each of these cells; one that is nowhere any more is left out."""
    return [found for cell in cells if (found := _bring(run, cell))]


def _bring(run: OpenRun, cell: CellView) -> BroughtLog | None:
    if not run.is_planned(cell.box):
        return None
    path = run.results.failed_log(cell.name)
    try:
        question = run_asks.ReadLog(None, MOST_LINES, MOST_BYTES, cell=cell.name)
        found = run.ask(cell.box, question)
        if not found.is_there:
            return None
        atomic.make_folder(path.parent)
        atomic.write_whole(path, found.data)
    except (BoxcarError, OSError) as error:
        return BroughtLog(cell.name, None, words_of(error))
    return BroughtLog(cell.name, path)
