"""`invoke logs`: one cell's own log, from wherever it lies now.

The wrapper of the attempt writes it on the box's scratch; the agent publishes it with the cell, and
a pull brings it here. A log is history, not state: when to stop following is read from the journal.
Nothing in a log can drive the terminal, and of a progress bar its last state is shown.
"""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from boxcar.formats import lock, state, timestamp
from boxcar.formats.errors import InputError
from boxcar.laptop import show
from boxcar.laptop.condition import may_run
from boxcar.laptop.view import CellView, RunView, look, scratch_of

if TYPE_CHECKING:
    from boxcar.laptop.project import Project

POLL_S = 0.5
# How far back the last lines are looked for: a progress bar is one endless line.
MOST_TAIL_BYTES = 8 * 1024 * 1024
_BLOCK_BYTES = 64 * 1024
_CHUNK_BYTES = 1024 * 1024
_UNDER_WAY = (state.Claimed, state.Running, state.Waiting)


def logs(project: Project, *, cell: str, follow: bool = False, lines: int = 50) -> int:
    """Print the last `lines` lines of the cell's log; with `follow` what comes, until it ends.

    Returns 1 where there is no log yet. Raises InputError for a cell that is not in the roster.
    """
    place = find(look(project, timestamp.utc_now()), cell)
    path = log_file(project, place)
    if path is None:
        show.say(f"{cell}: no log yet; the cell is {place.word}. See: invoke status")
        return 1
    if follow:
        chunks = followed(path, lines, lambda: _has_ended(project, cell))
    else:
        chunks = iter([last_lines(path, lines)[0]])
    for line in readable(chunks):
        print(line, flush=True)
    return 0


def find(view: RunView, cell: str) -> CellView:
    """The cell of that name. Raises InputError with the nearest names."""
    found = {known.name: known for known in view.cells}
    if cell in found:
        return found[cell]
    near = difflib.get_close_matches(cell, found, n=3)
    hint = f"nearest: {', '.join(near)}" if near else f"its cells: {', '.join(found) or 'none'}"
    raise InputError(f"{cell}: no cell of the run {view.run} has this name; {hint}")


def log_file(project: Project, cell: CellView) -> Path | None:
    """The scratch has the log while the cell runs; the durable tier and the results after it."""
    name = f"{cell.name}.log"
    scratch = scratch_of(project, cell.box)
    places = [project.durable.cell(cell.name) / name, project.results.cell(cell.name) / name]
    if scratch:
        places.insert(0, scratch.log(cell.name))
    return next((path for path in places if path.is_file()), None)


def last_lines(path: Path, lines: int) -> tuple[bytes, int]:
    """The last complete lines with what is unfinished after them, and the offset of the end."""
    with path.open("rb") as file:
        end = position = file.seek(0, os.SEEK_END)
        data = b""
        while position and data.count(b"\n") <= lines and len(data) < MOST_TAIL_BYTES:
            size_bytes = min(_BLOCK_BYTES, position)
            position -= size_bytes
            file.seek(position)
            data = file.read(size_bytes) + data
    return b"\n".join(data.split(b"\n")[-lines - 1 :]), end


def followed(path: Path, lines: int, has_ended: Callable[[], bool]) -> Iterator[bytes]:
    """The last lines and then what is appended, until it has ended and all of it was read."""
    data, offset = last_lines(path, lines)
    yield data
    is_over = False
    while True:
        data, offset = _since(path, offset)
        if data:
            yield data
        elif is_over:
            return
        else:
            # What was written before the end may have come after the read: read once more.
            is_over = has_ended()
            time.sleep(0 if is_over else POLL_S)


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


def _since(path: Path, offset: int) -> tuple[bytes, int]:
    """What stands behind the offset, and the next one. A file that was replaced begins anew."""
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) < offset:
                offset = 0
            file.seek(offset)
            data = file.read(_CHUNK_BYTES)
    except FileNotFoundError:
        return b"", 0
    return data, offset + len(data)


def _has_ended(project: Project, cell: str) -> bool:
    """Whether no more will be written: the cell has ended, or nobody is left who would go on."""
    view = look(project, timestamp.utc_now())
    place = find(view, cell)
    if place.record and not isinstance(place.record.state, _UNDER_WAY):
        return True
    if any(may_run(queue, view.at) for queue in view.queues if queue.name == place.queue):
        return False
    # The attempt outlives its agent, and holds a lock on its log.
    scratch = scratch_of(project, place.box)
    return scratch is None or not lock.is_held(scratch.log(cell))
