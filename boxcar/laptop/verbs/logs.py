"""`invoke logs`: one cell's own log, from wherever it lies now.

The wrapper of the attempt writes it on the box's scratch; the agent publishes it with the cell, and
a pull brings it here. A log is history, not state: when to stop following is read from the journal.
Nothing in a log can drive the terminal, and of a progress bar its last state is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from boxcar.laptop.common import show
from boxcar.laptop.common.near import no_such
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.log_source import BoxLog, FileLog, LogSource
from boxcar.laptop.run.look import is_planned, look
from boxcar.laptop.run.view import CellView, RunView
from boxcar.shared import state, timestamp
from boxcar.shared.errors import InputError

if TYPE_CHECKING:
    from boxcar.laptop.project.project import Project

_UNDER_WAY = (state.Claimed, state.Running, state.Waiting)


def logs(project: Project, *, cell: str, follow: bool = False, lines: int = 50) -> int:
    """Print the last `lines` lines of the cell's log; with `follow` what comes, until it ends.

    Returns 1 where there is no log yet. Raises InputError for a cell that is not in the roster.
    """
    project.boxes.refresh()
    place = find(look(project, timestamp.utc_now()), cell)
    source = source_of(project, place)
    if source is None:
        show.say(f"{cell}: no log yet; the cell is {place.word}. See: invoke status")
        return 1
    if follow:
        chunks = followed(source, lines, lambda: _has_ended(project, cell))
    else:
        chunks = iter([source.end(lines)[0]])
    for line in readable(chunks):
        print(line, flush=True)
    return 0


def find(view: RunView, cell: str) -> CellView:
    """The cell of that name. Raises InputError."""
    found = {known.name: known for known in view.cells}
    if cell in found:
        return found[cell]
    raise InputError(no_such(cell, found, what="cell", of=f"the run {view.run}"))


def source_of(project: Project, cell: CellView) -> LogSource | None:
    """The box has the log while the cell runs; the durable tier and the results after it."""
    if not project.is_local:
        return _source_on_box(project, cell)
    name = f"{cell.name}.log"
    places = [project.durable.cell(cell.name) / name, _pulled(project, cell)]
    if is_planned(project, cell.box):
        places.insert(0, project.scratch(cell.box).log(cell.name))
    return next((FileLog(path) for path in places if path.is_file()), None)


def _source_on_box(project: Project, cell: CellView) -> LogSource | None:
    pulled = _pulled(project, cell)
    if pulled.is_file() and not (cell.record and isinstance(cell.record.state, _UNDER_WAY)):
        return FileLog(pulled)
    if not is_planned(project, cell.box):
        return None
    log = BoxLog(project.boxes, cell.box, {"cell": cell.name})
    return log if log.is_there() else None


def _pulled(project: Project, cell: CellView) -> Path:
    published = project.results.cell(cell.name) / f"{cell.name}.log"
    return published if published.is_file() else project.results.failed_log(cell.name)


def followed(source: LogSource, lines: int, has_ended: Callable[[], bool]) -> Iterator[bytes]:
    """The last lines and then what is appended, until it has ended and all of it was read."""
    data, offset = source.end(lines)
    yield data
    is_over = False
    while True:
        data, offset = source.since(offset)
        if data:
            yield data
        elif is_over and not source.is_cut:
            return
        else:
            # What was written before the end may have come after the read: read once more.
            is_over = is_over or has_ended()
            time.sleep(0 if is_over and not source.is_cut else source.poll_s)


def readable(chunks: Iterable[bytes]) -> Iterator[str]:
    """Whole lines as they may go to a terminal; of one that was overwritten, its last state."""
    rest = b""
    for chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n")
        yield from map(_last_state, complete)
        # A progress bar may go on for hours without a line feed.
        rest = rest[rest.rstrip(b"\r").rfind(b"\r") + 1 :]
    if rest:
        yield _last_state(rest)


def _last_state(line: bytes) -> str:
    segments = [segment for segment in line.split(b"\r") if segment]
    return show.plain(segments[-1].decode("utf-8", "replace")) if segments else ""


def _has_ended(project: Project, cell: str) -> bool:
    """Whether no more will be written: the cell has ended, or nobody is left who would go on."""
    project.boxes.refresh()
    view = look(project, timestamp.utc_now())
    place = find(view, cell)
    if place.record and not isinstance(place.record.state, _UNDER_WAY):
        return True
    if any(may_run(queue) for queue in view.queues if queue.name == place.queue):
        return False
    # The attempt outlives its agent. Where nobody can tell, it is waited for.
    if not is_planned(project, place.box):
        return True
    return project.boxes.is_attempt_alive(place.box, cell) is False
