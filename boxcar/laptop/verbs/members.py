"""What `launch` does for a pool before it starts agents: the cells of boxes that are gone go to the
members that are left, and a member that is no longer in the job is drained.

A silent box gives nothing back: only a person knows that it will not come back. A job's end is
proof enough: on Slurm the agents that are left see it and go on with its cells by themselves; on
Kubernetes they cannot ask, so `launch` gives them the cells of a member that has left.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from boxcar.laptop.common import show
from boxcar.laptop.places.site import Site
from boxcar.laptop.run.moves import Move
from boxcar.laptop.run.view import CellView, QueueView, RunView
from boxcar.laptop.verbs import control, move
from boxcar.shared import names, state, timestamp
from boxcar.shared.errors import BoxcarError, Command, InputError, Message, message_of, some
from boxcar.shared.files import attempt
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.control import DRAIN, RUN
from boxcar.shared.sentence import _

_MOST_NAMED = 3


def give_back(site: Site, view: RunView, gone: Sequence[str], queues: Sequence[str]) -> None:
    """Move what the members on these boxes have begun and not finished to those of `queues`, in
    turn. Raises InputError where a box is in no pool, or somebody may be at work there.
    """
    for box in gone:
        lost = [queue for queue in view.queues if queue.box == box and names.is_member(queue.name)]
        if not lost:
            raise InputError(_("--gone {box}: it is not in a pool, so use move", box=box))
        for queue in lost:
            _give_back(site, view, queue, [name for name in queues if _share_file(name, queue)])
        if box in site.plan.queues.values():
            show.say(
                _("remove {box} from queues in job.yaml, if it is not to start again", box=box)
            )


def _give_back(site: Site, view: RunView, lost: QueueView, members: Sequence[str]) -> None:
    cells = list(_begun(site, view, lost))
    if not cells:
        show.say(_("{queue}: it has no unfinished cell", queue=lost.name))
        return
    if not members:
        raise InputError(_("{queue}: no other box is left in its pool", queue=lost.name))
    if running := [cell.name for cell in cells if site.is_attempt_alive(lost.box, cell.name)]:
        text = _("{box} still runs {cells}, so it is not gone", box=lost.box, cells=running[0])
        raise InputError(text, Command("launch", ("--box", lost.box)))
    for cell, queue in zip(cells, itertools.cycle(members)):
        claim = Claim(
            *(cell.name, queue, site.plan.queues[queue], timestamp.utc_now()),
            moved_from=lost.name,
        )
        move.take_claim(site, Move(claim, lost.name, lost.box))
    show.say(
        _(
            "{queue}: {n} unfinished {n:cell goes|cells go} to the boxes of its pool: {cells}",
            queue=lost.name,
            n=len(cells),
            cells=some([cell.name for cell in cells], _MOST_NAMED),
        )
    )


def _begun(site: Site, view: RunView, lost: QueueView) -> Iterator[CellView]:
    """What it has claimed, by the claims themselves: an agent may have died before it said so."""
    for cell in view.cells:
        now = cell.record.state if cell.record else None
        is_closed = isinstance(now, state.Verified) or (
            isinstance(now, state.Failed) and now.is_final
        )
        if is_closed or not _share_file(cell.queue, lost) or cell.is_dropped:
            continue
        claim = attempt.read_claim(site.tier.claim(cell.name))
        if claim and claim.queue == lost.name and not site.tier.manifest(cell.name).exists():
            yield cell


def _share_file(queue: str, other: QueueView) -> bool:
    return names.file_of(queue) == names.file_of(other.name)


def drain_left(site: Site, view: RunView) -> bool:
    """Of pools that are in the job; whether cells were given back. Raises InputError where a queue
    that had the file alone is at work: a member beside it would share its GPUs.
    """
    has_given = False
    if waiting := site.left_waiting():
        _call_off(site, waiting)
    for queue in view.queues:
        file = names.file_of(queue.name)
        if queue.name in site.plan.queues or file not in site.plan.boxes_of_files:
            continue
        if not names.is_member(queue.name):
            has_given |= _take_over(site, view, queue)
        elif site.has_ended(queue.name):
            has_given |= _give_to_others(site, view, queue)
        elif queue.name in waiting:
            continue
        elif queue.is_alive is not False and queue.wanted == RUN:
            _drain(site, queue)
        elif site.agents_see_ends or queue.is_alive:
            continue
        elif cells := list(_begun(site, view, queue)):
            text = _(
                "{queue} is no longer in the job and has {n} unfinished {n:cell|cells}. To give "
                "{n:it|them} to the others",
                queue=queue.name,
                n=len(cells),
            )
            words = ("--gone", queue.box, "--because", "…")
            show.say(Message(text, Command("launch", words)))
    return has_given


def _take_over(site: Site, view: RunView, queue: QueueView) -> bool:
    """What a queue has begun that had the file alone, before its box was one of a pool."""
    if queue.is_alive is not False:
        text = _(
            "{queue} is at work on {box}, alone with its file", queue=queue.name, box=queue.box
        )
        raise InputError(text, Command("drain", ("--box", queue.box), note=_("then launch")))
    return _give_to_others(site, view, queue)


def _give_to_others(site: Site, view: RunView, queue: QueueView) -> bool:
    """To the members that the job has of its pool; whether there was something to give."""
    if not any(_begun(site, view, queue)):
        return False
    others = [name for name in site.plan.queues if _share_file(name, queue)]
    _give_back(site, view, queue, others)
    return True


def _call_off(site: Site, waiting: Sequence[str]) -> None:
    """The jobs of members that have left, before they start. One that has just started is drained
    by the next launch.
    """
    if tasks := site.call_off(waiting):
        show.say(
            _(
                "{queues} {n:is|are} no longer in the job: what waited to start was cancelled "
                "({tasks})",
                queues=", ".join(waiting),
                n=len(waiting),
                tasks=", ".join(tasks),
            )
        )


def _drain(site: Site, queue: QueueView) -> None:
    try:
        control.write_control(site, control.reached_by(site, queue), queue.name, DRAIN)
    except (BoxcarError, OSError) as error:
        show.say(message_of(error).under(queue.name))
        return
    show.say(
        _(
            "{queue}: {box} is no longer in the job: its agent ends after the cell that it runs",
            queue=queue.name,
            box=queue.box,
        )
    )
