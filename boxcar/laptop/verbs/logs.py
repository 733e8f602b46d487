"""`invoke logs`: one cell's own log, from wherever it lies now.

The wrapper of the attempt writes it on the box's scratch; the agent publishes it with the cell, and
a pull brings it here. A log is history, not state: when to stop following is read from the journal.
Nothing in a log can drive the terminal, and of a progress bar its last state is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from boxcar.laptop.common import near, show
from boxcar.laptop.common.text_layout import plain
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.log_source import LogSource
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.state_words import state_sentence
from boxcar.laptop.run.view import CellView, RunView
from boxcar.shared import timestamp
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.sentence import _

# A cell of which there may be a log later.
NOT_BEGUN = ("queued", "preempted", "unknown")
MOST_BETWEEN_LOOKS_S = 5.0


def logs(
    project: Project, *, cell: str, follow: bool = False, lines: int = 50, as_json: bool = False
) -> int:
    """Print the last `lines` lines of the cell's log; with `follow` what comes, until it ends.

    With `follow` a cell that an agent has still to begin is waited for. Returns 1 where there is no
    log yet. Raises InputError for a cell that is not in the roster.
    """
    with open_site(project, show.say) as site:
        place = _place(site, cell)
        source = site.log_of(place)
        if source is None and follow:
            place, source = _awaited(site, place)
        if source is None:
            _say_nothing_yet(place, as_json=as_json)
            return 1
        if follow:
            chunks = followed(source, lines, lambda: _look_for_end(site, cell))
        else:
            chunks = iter([source.end(lines)[0]])
        for line in readable(chunks):
            if as_json:
                show.json_line("logs", {"cell": cell, "text": line})
            else:
                print(line, flush=True)
        return 0


def _say_nothing_yet(place: CellView, *, as_json: bool) -> None:
    words = {"cell": place.name, "state": state_sentence(place.word)}
    none = Message(_("{cell}: no log yet; the cell is {state}. See", **words), Command("status"))
    show.say(none)
    if as_json:
        show.json_error("logs", 1, [none])


def _awaited(site: Site, place: CellView) -> tuple[CellView, LogSource | None]:
    """The log once it has begun; None where no agent is left that would begin it."""
    view = look_at_run(site, timestamp.utc_now())
    is_told = False
    while (source := site.log_of(place)) is None and _may_begin(view, place):
        if not is_told:
            words = {"cell": place.name, "state": state_sentence(place.word)}
            show.say(_("{cell} is {state}; waiting for its log", **words))
            is_told = True
        site.await_news(min(site.poll_s, MOST_BETWEEN_LOOKS_S), site.poll_s)
        site.refresh()
        view = look_at_run(site, timestamp.utc_now())
        place = find(view, place.name)
    return place, source


def _may_begin(view: RunView, place: CellView) -> bool:
    is_open = place.is_under_way or place.word in NOT_BEGUN
    return is_open and any(may_run(queue) for queue in view.queues if queue.name == place.queue)


def _place(site: Site, cell: str) -> CellView:
    """The cell as it is now; as it was last known, where its log is final and here already."""
    known = {one.name: one for one in look_at_run(site, timestamp.utc_now()).cells}.get(cell)
    if known and known.is_verified and site.pulled_log(cell).is_file():
        return known
    site.refresh()
    return find(look_at_run(site, timestamp.utc_now()), cell)


def find(view: RunView, cell: str) -> CellView:
    """The cell of that name. Raises InputError."""
    found = {known.name: known for known in view.cells}
    if cell in found:
        return found[cell]
    raise InputError(near.unknown_of(cell, found, what="cell", of=near.the_run(view.run)))


def followed(source: LogSource, lines: int, look_for_end: Callable[[], bool]) -> Iterator[bytes]:
    """The last lines and then what is appended, until it has ended and all of it was read."""
    data, offset = source.end(lines)
    yield data
    is_over = False
    while True:
        began = time.monotonic()
        data, offset = source.since(offset, is_to_wait=not is_over)
        if data:
            yield data
        elif is_over and not source.is_cut:
            return
        else:
            # What was written before the end may have come after the read: read once more.
            is_over = is_over or look_for_end()
            is_read_on = is_over and not source.is_cut
            if not is_read_on:  # a box has waited itself, where somebody may still write
                time.sleep(max(0.0, began + source.poll_s - time.monotonic()))


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
    return plain(segments[-1].decode("utf-8", "replace")) if segments else ""


def _look_for_end(site: Site, cell: str) -> bool:
    """Ask whether no more will be written: it has ended, or nobody is left who would go on."""
    site.refresh()
    view = look_at_run(site, timestamp.utc_now())
    place = find(view, cell)
    if place.record and not place.is_under_way:
        return True
    if any(may_run(queue) for queue in view.queues if queue.name == place.queue):
        return False
    # The attempt outlives its agent. Where nobody can tell, it is waited for.
    if not site.is_planned(place.box):
        return True
    return site.is_attempt_alive(place.box, cell) is False
