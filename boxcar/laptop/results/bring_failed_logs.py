"""The logs of cells that failed: they are no results, and with the box they would be gone.

`pull` brings the end of each into `results/<run>/failed/`. Nobody's verdict depends on them, so one
that cannot be had is said and holds up nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from boxcar.laptop.common import show
from boxcar.laptop.run.look import is_planned, look
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import CellView
from boxcar.shared import state, timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError
from boxcar.shared.wire import asks

if TYPE_CHECKING:
    from pathlib import Path


MOST_BYTES = 8 * 1024 * 1024
_MOST_LINES = 100_000


def pull(run: OpenRun, cells: Iterable[str]) -> list[Path]:
    """Bring the log of each of these cells that failed; where they lie now."""
    wanted = set(cells)
    found = look(run, timestamp.utc_now()).cells
    paths = [_bring(run, cell) for cell in found if cell.name in wanted and _has_failed(cell)]
    return [path for path in paths if path]


def _has_failed(cell: CellView) -> bool:
    return cell.record is not None and isinstance(cell.record.state, state.Failed)


def _bring(run: OpenRun, cell: CellView) -> Path | None:
    if not is_planned(run, cell.box):
        return None
    path = run.results.failed_log(cell.name)
    try:
        question = asks.ReadLog(None, _MOST_LINES, MOST_BYTES, cell=cell.name)
        found = run.boxes.ask(cell.box, question)
        if not found.is_there:
            return None
        atomic.make_folder(path.parent)
        atomic.write_whole(path, found.data)
    except (BoxcarError, OSError) as error:
        show.say(f"{cell.name}: its log could not be brought here: {error}")
        return None
    return path
