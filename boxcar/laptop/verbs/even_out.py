"""Boxes that share a queue file and no durable tier: what they wait for is evened out at each look,
as long as somebody looks. Only cells that wait are moved, as `move` does it, a few at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from boxcar.laptop.common import show
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import dealt_queues
from boxcar.laptop.project.queues.sync import complete
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.moves import Move
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.verbs import move
from boxcar.laptop.verbs.next_step import has_begun
from boxcar.shared import state, timestamp
from boxcar.shared.errors import BoxcarError, message_of
from boxcar.shared.files import queue_line
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.sentence import _

# Each takes some questions to both boxes; the next look goes on.
MOST_MOVES = 4

Given = tuple[str, str, str]  # the cell, from which queue, to which


def even_out(site: Site, view: RunView, starting: Collection[str] = ()) -> bool:
    """Whether a cell was moved, so that the view is out of date. A queue gets cells where its agent
    is at work or is among `starting`; a box that does not answer keeps what it has. Raises nothing
    for a move that is refused: its agent has just begun the cell.
    """
    if site.plan.durable_scope != EACH_BOX or not has_begun(view):
        return False
    pools = dealt_queues.pools_of_job(site.project.job, site.project.profile)
    can_take = {q.name for q in view.queues if q.is_alive and q.wanted == "run"} | {*starting}
    has_moved = False
    for queues in pools.values():
        known = [name for name in queues if name in site.plan.queues]
        reached = [name for name in known if not site.is_out_of_reach(site.plan.queues[name])]
        waiting = {name: _waiting(site, view, name) for name in reached}
        for given in moves_to_even(waiting, can_take & {*reached})[:MOST_MOVES]:
            has_moved |= _give(site, given)
    return has_moved


def moves_to_even(waiting: Mapping[str, Sequence[str]], can_take: Collection[str]) -> list[Given]:
    """Until no queue that can take cells has two fewer than another: the last of the longest goes.
    Pure.
    """
    left = {queue: list(cells) for queue, cells in waiting.items()}
    found: list[Given] = []
    takers = [queue for queue in left if queue in can_take]
    while takers:
        least = min(takers, key=lambda queue: len(left[queue]))
        most = max(left, key=lambda queue: len(left[queue]))
        if len(left[most]) - len(left[least]) < 2:
            break
        found.append((left[most].pop(), most, least))
        left[least].append(found[-1][0])
    return found


def _waiting(site: Site, view: RunView, queue: str) -> list[str]:
    """In the order of its file, which knows of each move at once; the plan is as it was opened."""
    waits = {cell.name for cell in view.cells if _only_waits(cell)}
    lines = queue_line.parse_queue(complete(site.project.queue_files[queue].read_bytes())).cells
    return [line.name for line in lines if line.name in waits]


def _only_waits(cell: CellView) -> bool:
    is_open = not (cell.is_dropped or cell.after or cell.given_up or cell.damage)
    is_queued = cell.record is not None and isinstance(cell.record.state, state.Queued)
    return is_open and is_queued and not cell.seconds


def _give(site: Site, given: Given) -> bool:
    cell, before, queue = given
    box, box_before = site.plan.queues[queue], site.plan.queues[before]
    claim = Claim(cell, queue, box, timestamp.utc_now(), moved_from=before)
    try:
        move.take_claim(site, Move(claim, before, box_before))
        move.move_line(site.project, cell, before, queue)
        move.send_lines(site, before, queue)
    except (BoxcarError, OSError) as error:
        show.say(message_of(error).under(cell))
        return False
    show.say(_("{cell} waits on {box} now, which has less to do", cell=cell, box=box))
    return True


def look_and_even_out(site: Site, starting: Collection[str] = ()) -> RunView:
    """What is seen once waiting cells are evened out."""
    view = look_at_run(site, timestamp.utc_now())
    if even_out(site, view, starting):
        site.refresh()
        view = look_at_run(site, timestamp.utc_now())
    return view
